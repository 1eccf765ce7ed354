# The controllers that __init__.py finds in its folder, for type checkers; a test compares the two.
from typing import Any

from geomctrl.control.tuning import Tuned
from geomctrl.controllers.composite import Composite as Composite
from geomctrl.controllers.computed_torque import ComputedTorque as ComputedTorque
from geomctrl.controllers.concurrent_learning import ConcurrentLearning as ConcurrentLearning
from geomctrl.controllers.dead_zone import DeadZone as DeadZone
from geomctrl.controllers.drem import DREM as DREM
from geomctrl.controllers.e_modification import EModification as EModification
from geomctrl.controllers.elastic_joint import ElasticJoint as ElasticJoint
from geomctrl.controllers.momentum_adaptation import MomentumAdaptation as MomentumAdaptation
from geomctrl.controllers.natural_adaptation import NaturalAdaptation as NaturalAdaptation
from geomctrl.controllers.passivity import Passivity as Passivity
from geomctrl.controllers.pd_gravity import PDGravity as PDGravity
from geomctrl.controllers.robust import Robust as Robust
from geomctrl.controllers.sigma_modification import SigmaModification as SigmaModification
from geomctrl.controllers.slotine_li import SlotineLi as SlotineLi
from geomctrl.controllers.smooth_projection import SmoothProjection as SmoothProjection
from geomctrl.controllers.super_twisting import SuperTwisting as SuperTwisting

def __getattr__(name: str) -> Any: ...
def classes() -> dict[str, type]: ...
def tuned() -> dict[str, type[Tuned]]: ...
