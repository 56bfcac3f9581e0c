"""Fills in the control words of a cluster: addresses and sizes of its arrays, for the compiled loop."""

from __future__ import annotations

from ptxsim.jit import bytecode
from ptxsim.jit.host import address_in_host
from ptxsim.machine.cluster_view import Cluster
from ptxsim.machine.plain_programs import is_plain


def describe_arrays(cluster: Cluster) -> None:
    """Describes the arrays in cluster.control. Needed only once: the arrays never move."""
    program = cluster.program
    arrays = {
        bytecode.CODE_PTR: program.code,
        bytecode.LISTS_PTR: program.lists,
        bytecode.R_PTR: cluster.registers,
        bytecode.P_PTR: cluster.predicates,
        bytecode.SP_PTR: cluster.split_table,
        bytecode.G_PTR: cluster.group_table,
        bytecode.CT_PTR: cluster.cta_table,
        bytecode.LOG_PTR: cluster.access_log,
        bytecode.ALIVE_PTR: cluster.living,
        bytecode.LOCAL_PTR: cluster.local,
        bytecode.LOCAL_WRITTEN: cluster.local_written,
        bytecode.TMEM_PTR: cluster.tmem_table,
    }
    numbers = {
        bytecode.WARPS_PER_CTA: cluster.warps_per_cta,
        bytecode.CLUSTER_SIZE: cluster.ctas,
        bytecode.LOCAL_BYTES: program.local_bytes,
        bytecode.ROWS: len(program.code),
        bytecode.LISTS: len(program.lists),
        bytecode.R_STRIDE: cluster.registers.strides[0],
        bytecode.P_STRIDE: cluster.predicates.strides[0],
        bytecode.SPLITS: len(cluster.split_table),
        bytecode.LOG_ROOM: len(cluster.access_log),
    }
    for word, array in arrays.items():
        cluster.control[word] = address_in_host(array)
    for word, number in numbers.items():
        cluster.control[word] = number


def describe_launch(cluster: Cluster) -> None:
    """Adds the settings of a launch. `Cluster.map_memory` adds global memory later."""
    in_place = cluster.late.on or cluster.bus.in_place
    cluster.control[bytecode.SHARED_LIMIT] = cluster.launch.shared_end
    cluster.control[bytecode.LOG_ON] = cluster.bus.heard
    cluster.control[bytecode.ELECTED] = cluster.choices.elected
    by_rule = cluster.bus.heard and not in_place and isinstance(cluster.order, str)
    cluster.control[bytecode.FOLLOWS] = by_rule and is_plain(cluster.program)
    cluster.control[bytecode.ISSUES] = 0 if in_place else bytecode.ISSUE_ROOM
