"""Small edits of a student's own builder that may repair it, likeliest first; cli/trials.py tries them.

`edits.py` makes them from the text of the file, `ranking.py` sorts them by what the findings name and by how
well they fit the rest of the file (`fit.py`), and `wording.py` describes what an edit changes.
"""

from tirxlab.explain.repairs.ranking import ranked
from tirxlab.explain.repairs.text import Edit, alone
from tirxlab.explain.repairs.wording import Repair, told

__all__ = ["Edit", "Repair", "alone", "ranked", "told"]
