"""All causes, by id. `rank` orders findings (ranking.py); a hint that two causes share is written once.
checks/diagnosis decides which cause a record shows.
"""

from __future__ import annotations

import itertools

from ptxsim.causes.at_barriers import AT_BARRIERS
from ptxsim.causes.at_rings import AT_RINGS
from ptxsim.causes.cause import Cause
from ptxsim.causes.elsewhere import ELSEWHERE
from ptxsim.causes.of_outputs import OF_OUTPUTS
from ptxsim.causes.of_places import OF_PLACES
from ptxsim.causes.of_products import OF_PRODUCTS
from ptxsim.causes.of_roles import OF_ROLES

TABLES = AT_BARRIERS, AT_RINGS, OF_ROLES, OF_OUTPUTS, OF_PLACES, OF_PRODUCTS, ELSEWHERE
CAUSES: dict[str, Cause] = {
    cause.id: cause for cause in sorted(itertools.chain(*TABLES), key=lambda c: c.rank)
}
