"""Controllers, one per file: each carries its Lyapunov function and the derivative its proof promises."""

from .computed_torque import ComputedTorque
from .passivity import Passivity
from .pd_gravity import PDGravity
from .slotine_li import SlotineLi

__all__ = ["ComputedTorque", "PDGravity", "Passivity", "SlotineLi"]
