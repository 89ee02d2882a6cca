import { workerData } from 'node:worker_threads';
import { createSampler, type SamplerOptions } from '../sampler/sampler.ts';
import type { LoadWeightsOptions, PauseMode, SampleRequest } from '../sampler-core.ts';
import { createEventBatcher } from './event-batcher.ts';
import { serveCalls } from './serve.ts';

// The sampler's thread: runs decode steps while there is work, and answers calls between two steps.

const sampler = createSampler(workerData as SamplerOptions); // startThread passes exactly this
let stepScheduled = false;

// sampler-client.ts, the other end, passes these arguments.
const port = serveCalls(
  {
    submit: ([ticket, request]) => {
      sampler.submit(request as SampleRequest, (event) => batcher.add(ticket as number, event));
    },
    abort: ([requestIds]) => sampler.abort(requestIds as readonly string[] | 'all'),
    pause: ([mode]) => sampler.pause(mode as PauseMode),
    resume: () => sampler.resume(),
    loadWeights: ([path, version, options]) =>
      sampler.loadWeights(path as string, version as string, options as LoadWeightsOptions | undefined),
    setVersion: ([version]) => sampler.setVersion(version as string),
    status: () => sampler.status(),
  },
  () => {
    batcher.flush();
    schedule();
  },
);
const batcher = createEventBatcher((message) => port.postMessage(message));

/** Schedules one step per turn of the event loop, so that calls are answered in between. */
function schedule(): void {
  if (stepScheduled || !sampler.ready()) return;
  stepScheduled = true;
  setImmediate(() => {
    stepScheduled = false;
    if (sampler.ready()) sampler.step();
    if (sampler.ready()) batcher.flushIfDue();
    else batcher.flush();
    schedule();
  });
}
