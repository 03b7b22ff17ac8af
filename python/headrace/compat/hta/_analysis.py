"""`TraceAnalysis`: the methods of Holistic Trace Analysis, with its arguments and its data frames."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence

import pandas as pd

from headrace.compat.hta import (
    _annotations,
    _breakdown,
    _counters,
    _critical_path,
    _cupti,
    _launches,
    _sequences,
    _stragglers,
)
from headrace.compat.hta._trace import Trace, TraceFiles


class TimeSeriesTypes(enum.Flag):
    """Counters that `TraceAnalysis.generate_trace_with_counters` adds."""

    QUEUE_LENGTH = enum.auto()
    MEMCPY_BANDWIDTH = enum.auto()


class TraceAnalysis:
    """Traces of one or several ranks, read at once. Times are microseconds. ``visualize`` draws nothing."""

    def __init__(
        self,
        trace_files: TraceFiles = None,
        trace_dir: str = "",
        include_last_profiler_step: bool | None = False,
    ) -> None:
        self.t = Trace(trace_files, trace_dir)
        self.t.align_and_filter_trace(bool(include_last_profiler_step))
        if not self.t.traces:
            raise ValueError("no complete event in any trace")

    def _ranks(self, ranks: Sequence[int] | None) -> Sequence[int]:
        return ranks or [0]

    # --- breakdowns ---

    def get_temporal_breakdown(self, visualize: bool = True) -> pd.DataFrame:
        return _breakdown.temporal_breakdown(self.t)

    def get_comm_comp_overlap(self, visualize: bool = True) -> pd.DataFrame:
        return _breakdown.communication_overlap(self.t)

    def get_gpu_kernel_breakdown(
        self,
        visualize: bool = True,
        duration_ratio: float = 0.8,
        num_kernels: int = 10,
        include_memory_kernels: bool = True,
        image_renderer: str = "",
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        return _breakdown.kernel_breakdown(self.t, duration_ratio, num_kernels, include_memory_kernels)

    def get_idle_time_breakdown(
        self,
        ranks: Sequence[int] | None = None,
        streams: Sequence[int] | None = None,
        visualize: bool = True,
        visualize_pctg: bool = True,
        show_idle_interval_stats: bool = False,
        consecutive_kernel_delay: int = 30,
    ) -> tuple[pd.DataFrame, pd.DataFrame | None]:
        return _breakdown.idle_time(
            self.t, self._ranks(ranks), streams, show_idle_interval_stats, consecutive_kernel_delay
        )

    # --- launches and queues ---

    def get_queue_length_time_series(self, ranks: Sequence[int] | None = None) -> dict[int, pd.DataFrame]:
        series = {rank: _counters.queue_length(self.t, rank) for rank in self._ranks(ranks)}
        return {rank: table for rank, table in series.items() if table is not None}

    def get_queue_length_summary(self, ranks: Sequence[int] | None = None) -> pd.DataFrame | None:
        return _counters.queue_length_summary(self.get_queue_length_time_series(ranks))

    def get_queue_length_summary_from_time_series(
        self, queue_length_dict: Mapping[int, pd.DataFrame]
    ) -> pd.DataFrame | None:
        return _counters.queue_length_summary(queue_length_dict)

    def get_time_spent_blocked_on_full_queue(
        self, queue_length_dict: Mapping[int, pd.DataFrame], max_queue_length: int = 1024
    ) -> pd.DataFrame | None:
        return _counters.blocked_on_full_queue(self.t, queue_length_dict, max_queue_length)

    def get_memory_bw_time_series(self, ranks: Sequence[int] | None = None) -> dict[int, pd.DataFrame]:
        series = {rank: _counters.memory_bandwidth(self.t, rank) for rank in self._ranks(ranks)}
        return {rank: table for rank, table in series.items() if table is not None}

    def get_memory_bw_summary(self, ranks: Sequence[int] | None = None) -> pd.DataFrame | None:
        return _counters.memory_bandwidth_summary(self.get_memory_bw_time_series(ranks))

    def generate_trace_with_counters(
        self,
        time_series: TimeSeriesTypes | None = None,
        ranks: Sequence[int] | None = None,
        output_suffix: str = "_with_counters",
    ) -> None:
        chosen = time_series or (TimeSeriesTypes.QUEUE_LENGTH | TimeSeriesTypes.MEMCPY_BANDWIDTH)
        _counters.with_counters(
            self.t,
            TimeSeriesTypes.QUEUE_LENGTH in chosen,
            TimeSeriesTypes.MEMCPY_BANDWIDTH in chosen,
            self._ranks(ranks),
            output_suffix,
        )

    def get_cuda_kernel_launch_stats(
        self,
        ranks: Sequence[int] | None = None,
        runtime_cutoff: int = 50,
        launch_delay_cutoff: int = 100,
        include_memory_events: bool = True,
        visualize: bool = True,
    ) -> dict[int, pd.DataFrame]:
        return {
            rank: _launches.launch_statistics(self.t, rank, include_memory_events)
            for rank in self._ranks(ranks)
        }

    def get_aten_op_kernels_and_delay(
        self, ranks: Sequence[int] | None = None, sort_by: Sequence[str] | None = None
    ) -> dict[int, pd.DataFrame]:
        order = sort_by or ["occurrence_count"]
        return {rank: _launches.aten_sequences(self.t, rank, order) for rank in self._ranks(ranks)}

    def get_frequent_cuda_kernel_sequences(
        self,
        operator_name: str,
        output_dir: str,
        min_pattern_len: int = 3,
        rank: int = 0,
        top_k: int = 5,
        visualize: bool = False,
        compress_other_kernels: bool = True,
    ) -> pd.DataFrame:
        return _sequences.frequent_sequences(
            self.t, operator_name, output_dir, min_pattern_len, rank, top_k, compress_other_kernels
        )

    # --- annotations ---

    def get_gpu_kernels_with_user_annotations(
        self, rank: int, expand_names: bool = True, shorten_names: bool = True
    ) -> pd.DataFrame | None:
        return _annotations.kernels_with_annotations(self.t, rank, expand_names, shorten_names)

    def get_gpu_user_annotation_breakdown(
        self,
        use_gpu_annotation: bool = True,
        visualize: bool = True,
        duration_ratio: float = 0.8,
        num_kernels: int = 1000,
        allowlist_patterns: Sequence[str] | None = None,
        image_renderer: str | None = None,
    ) -> pd.DataFrame | None:
        return _annotations.annotation_breakdown(
            self.t, use_gpu_annotation, duration_ratio, num_kernels, allowlist_patterns
        )

    # --- critical path ---

    def critical_path_analysis(
        self,
        rank: int,
        annotation: str,
        instance_id: int | tuple[int, int] | None,
        data_load_events: Sequence[str] | None = None,
    ) -> tuple[_critical_path.CPGraph, bool] | None:
        return _critical_path.critical_path(self.t, rank, annotation, instance_id, data_load_events)

    def overlay_critical_path_analysis(
        self,
        rank: int,
        critical_path_graph: _critical_path.CPGraph,
        output_dir: str,
        only_show_critical_events: bool = True,
        show_all_edges: bool = False,
    ) -> str:
        return _critical_path.overlay(
            self.t, rank, critical_path_graph, output_dir, only_show_critical_events, show_all_edges
        )

    # --- steps and ranks ---

    def get_profiler_steps(self) -> list[int]:
        steps: set[int] = set()
        symbols = self.t.symbol_table
        names = set(symbols.matching(r"^ProfilerStep#\d+").tolist())
        for frame in self.t.traces.values():
            here = names & set(frame["name"].unique().tolist())
            steps |= {int(symbols.sym_table[i].split("#")[1]) for i in here}
        return sorted(steps)

    def get_potential_stragglers(
        self,
        profiler_steps: Sequence[int] | None = None,
        num_candidates: int = 2,
        visualize: bool = False,
        straggler_identification_impl: Callable[[Trace, Sequence[int] | None, int], list[int]] | None = None,
    ) -> list[int]:
        """``straggler_identification_impl(trace, steps, candidates)`` replaces the rule of late starts."""
        find = straggler_identification_impl or _stragglers.potential_stragglers
        return find(self.t, profiler_steps, num_candidates)

    def get_cupti_counter_data_with_operators(self, ranks: Sequence[int] | None = None) -> list[pd.DataFrame]:
        return _cupti.counters_with_operators(self.t, self._ranks(ranks))
