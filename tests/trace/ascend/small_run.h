// One training step on an Ascend device, as its profiler writes it: two kernels, a copy and a collective.
#pragma once

#include <string>

namespace headrace::trace::ascend {

/// Times in microseconds from 1,000,000 on. The loop's thread is 101, the one that launches 102, the process
/// 100; all on device 3.
///
///     101  ProfilerStep#7 [0, 1000)   DataLoader [10, 60)   aten::mm [100, 150): Enqueue   aten::add: Enqueue
///     102  Dequeue@mm [160, 200): Node@launch [170, 190)    Dequeue@add [210, 240): Node@launch [220, 230)
///     stream 2   copy [205, 215)   MatMul [300, 340)   Add [350, 380), begins before the collective ends
///     stream 4   hcom_allReduce [330, 370)
inline std::string small_trace_view() {
  return R"json([
{"ph":"M","name":"process_name","pid":100,"tid":0,"args":{"name":"Python"}},
{"ph":"M","name":"process_labels","pid":100,"tid":0,"args":{"labels":"CPU"}},
{"ph":"M","name":"process_name","pid":102688,"tid":0,"args":{"name":"CANN"}},
{"ph":"M","name":"process_labels","pid":102688,"tid":0,"args":{"labels":"CPU"}},
{"ph":"M","name":"process_name","pid":102819,"tid":0,"args":{"name":"Ascend Hardware"}},
{"ph":"M","name":"process_labels","pid":102819,"tid":0,"args":{"labels":"NPU"}},
{"ph":"M","name":"process_name","pid":102851,"tid":0,"args":{"name":"HCCL"}},
{"ph":"M","name":"process_labels","pid":102851,"tid":0,"args":{"labels":"NPU"}},
{"ph":"M","name":"thread_name","pid":102851,"tid":0,"args":{"name":"Group 0 Communication"}},
{"ph":"M","name":"thread_name","pid":102851,"tid":1,"args":{"name":"Plane 0"}},
{"ph":"M","name":"process_name","pid":102883,"tid":0,"args":{"name":"Overlap Analysis"}},
{"ph":"X","name":"ProfilerStep#7","pid":100,"tid":101,"ts":"1000000.000","dur":1000.0,"cat":"cpu_op","args":{}},
{"ph":"X","name":"enumerate(DataLoader)#_Iter.__next__","pid":100,"tid":101,"ts":"1000010.000","dur":50,"cat":"cpu_op","args":{}},
{"ph":"X","name":"aten::mm","pid":100,"tid":101,"ts":"1000100.000","dur":50,"cat":"cpu_op","args":{"Input Dims":"8,8;\r\n8,8"}},
{"ph":"X","name":"Enqueue","pid":100,"tid":101,"ts":"1000120.000","dur":5,"cat":"enqueue","args":{"correlation_id":1}},
{"ph":"s","bp":"e","name":"enqueue_to_dequeue","id":1,"pid":100,"tid":101,"ts":"1000120.000","cat":"async_task_queue"},
{"ph":"f","bp":"e","name":"enqueue_to_dequeue","id":1,"pid":100,"tid":102,"ts":"1000160.000","cat":"async_task_queue"},
{"ph":"X","name":"aten::add","pid":100,"tid":101,"ts":"1000160.000","dur":30,"cat":"cpu_op","args":{}},
{"ph":"X","name":"Enqueue","pid":100,"tid":101,"ts":"1000170.000","dur":5,"cat":"enqueue","args":{"correlation_id":2}},
{"ph":"X","name":"Dequeue@mm","pid":100,"tid":102,"ts":"1000160.000","dur":40,"cat":"dequeue","args":{"correlation_id":1}},
{"ph":"X","name":"Dequeue@add","pid":100,"tid":102,"ts":"1000210.000","dur":30,"cat":"dequeue","args":{"correlation_id":2}},
{"ph":"X","name":"AscendCL@aclrtMemcpyAsync","pid":102688,"tid":101,"ts":"1000200.000","dur":3,"args":{"level":"acl","connection_id":50}},
{"ph":"X","name":"Node@launch","pid":102688,"tid":102,"ts":"1000170.000","dur":20,"args":{"level":"node","connection_id":51}},
{"ph":"X","name":"Node@launch","pid":102688,"tid":102,"ts":"1000220.000","dur":10,"args":{"level":"node","connection_id":52}},
{"ph":"X","name":"Node@launch","pid":102688,"tid":102,"ts":"1000232.000","dur":5,"args":{"level":"node","connection_id":53}},
{"ph":"X","name":"MEMCPY_ASYNC","pid":102819,"tid":2,"ts":"1000205.000","dur":10,"args":{"Task Type":"SDMA_SQE","Physic Stream Id":2,"connection_id":50,"data size(Byte)":40000,"memcpy direction":"host to device"}},
{"ph":"X","name":"MatMul1","pid":102819,"tid":2,"ts":"1000300.000","dur":40,"args":{"Task Type":"AI_CORE","Physic Stream Id":2,"connection_id":51}},
{"ph":"X","name":"MemSet","pid":102819,"tid":2,"ts":"1000350.000","dur":30,"args":{"Task Type":"AI_VECTOR_CORE","Physic Stream Id":2,"connection_id":52}},
{"ph":"X","name":"EVENT_WAIT","pid":102819,"tid":2,"ts":"1000380.000","dur":1,"args":{"Task Type":"EVENT_WAIT_SQE","Physic Stream Id":2}},
{"ph":"X","name":"SDMA","pid":102819,"tid":4,"ts":"1000331.000","dur":30,"args":{"Task Type":"SDMA","Physic Stream Id":4,"connection_id":53}},
{"ph":"X","name":"hcom_allReduce__271_0_1","pid":102851,"tid":0,"ts":"1000330.000","dur":40,"args":{"connection_id":53,"data_type":"FP32"}},
{"ph":"X","name":"Memcpy","pid":102851,"tid":1,"ts":"1000331.000","dur":30,"args":{"stream id":4,"size(Byte)":1000}},
{"ph":"C","name":"AI Core Freq","pid":102915,"tid":0,"ts":"1000000.000","args":{"MHz":1800}}
])json";
}

/// The same with the profiler's own sums behind the last event.
inline std::string with_overlap_analysis(std::string trace, const std::string& rows) {
  return trace.replace(trace.rfind("\n]"), 2, rows + "\n]");
}

}  // namespace headrace::trace::ascend
