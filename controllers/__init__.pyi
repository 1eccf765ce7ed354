# The controllers that __init__.py finds in its folder, for type checkers; a test compares the two.
from typing import Any

from geomctrl.control.tuning import Tuned
from geomctrl.controllers.cartesian_impedance import CartesianImpedance as CartesianImpedance
from geomctrl.controllers.computed_torque import ComputedTorque as ComputedTorque
from geomctrl.controllers.elastic_joint import ElasticJoint as ElasticJoint
from geomctrl.controllers.energy_tank import EnergyTank as EnergyTank
from geomctrl.controllers.geometric_impedance import GeometricImpedance as GeometricImpedance
from geomctrl.controllers.joint_impedance import JointImpedance as JointImpedance
from geomctrl.controllers.momentum_observer import MomentumObserver as MomentumObserver
from geomctrl.controllers.operational_space import OperationalSpace as OperationalSpace
from geomctrl.controllers.passivity import Passivity as Passivity
from geomctrl.controllers.pd_gravity import PDGravity as PDGravity
from geomctrl.controllers.slotine_li import SlotineLi as SlotineLi

def __getattr__(name: str) -> Any: ...
def classes() -> dict[str, type]: ...
def tuned() -> dict[str, type[Tuned]]: ...
