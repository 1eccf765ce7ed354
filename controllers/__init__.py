"""Controllers, one per file: each carries its Lyapunov function and the derivative its proof promises."""

from geomctrl.controllers.computed_torque import ComputedTorque
from geomctrl.controllers.elastic_joint import ElasticJoint
from geomctrl.controllers.passivity import Passivity
from geomctrl.controllers.pd_gravity import PDGravity
from geomctrl.controllers.slotine_li import SlotineLi

__all__ = ["ComputedTorque", "ElasticJoint", "PDGravity", "Passivity", "SlotineLi"]
