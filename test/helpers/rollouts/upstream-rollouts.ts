import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { createTraceActivities } from '../../../activities/host/traces.ts';
import { secretOf } from '../../../infra/gateway/secret.ts';
import type { Upstreams } from '../../../infra/gateway/upstream/upstreams.ts';
import { cacheDirectory } from '../../../infra/process/cache.mjs';
import { createScriptedEngine } from '../engine/scripted-engine.ts';
import { startTestGateway, type TestGateway } from '../gateway/gateway.ts';
import { writeHarborTask } from '../tasks/harbor-task.ts';
import { type Rollouts, startRollouts } from './rollouts.ts';

/** Rollouts in local sandboxes whose model is an upstream one, and two tasks that differ in a file. */
export interface UpstreamRollouts {
  readonly rollouts: Rollouts;
  readonly gateway: TestGateway;
  /** The directory of the tasks `easy` and `hard`, each with its name in name.txt. */
  readonly tasks: string;
  close(): Promise<void>;
}

export async function startUpstreamRollouts(upstreams: Upstreams): Promise<UpstreamRollouts> {
  const engine = createScriptedEngine({ script: () => assert.fail('the engine is not asked') });
  const gateway = await startTestGateway(engine, { upstreams });
  const {
    stackKeys: [stackKey],
    sockets,
  } = gateway.options;
  const rollouts = await startRollouts((home) => ({
    taskRoots: [join(home, 'tasks')],
    cacheDir: cacheDirectory(process.env),
    gateway: {
      gatewaySockets: sockets,
      secretsOf: (session) => [secretOf(stackKey, session)],
      sessions: gateway.control,
    },
    upstream: gateway.control.upstream,
    sessions: createTraceActivities(gateway.control, async () => undefined),
  }));
  const tasks = join(rollouts.home, 'tasks');
  await mkdir(tasks);
  for (const name of ['easy', 'hard']) {
    await writeHarborTask(tasks, name, { workspace: { 'answer.txt': 'wrong\n', 'name.txt': name } });
  }
  return {
    rollouts,
    gateway,
    tasks,
    async close() {
      await rollouts.close();
      await gateway[Symbol.asyncDispose]();
    },
  };
}
