import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { WorkflowBundleOption as WorkflowBundle } from '@temporalio/worker';
import type { Script } from './script.ts';
import { type ScriptedWorkers, startScriptedWorkers } from './scripted-activities.ts';
import { startOwnTestServer, startTestServer, type TestServer } from './temporal.ts';

/** Scripted workers with their own home directory and Temporal server, for the tests of one `describe`. */
export interface ScriptedStack {
  readonly home: string;
  readonly server: TestServer;
  readonly workers: ScriptedWorkers;
  /** The behaviour of rollouts from now on; each test may set its own. */
  script: Script;
  close(): Promise<void>;
}

export interface ScriptedStackOptions {
  readonly script?: Script;
  /** Workflows that were changed for a test; default: the real ones. */
  readonly workflowBundle?: WorkflowBundle;
  /** The length of a history in events from which the server suggests to continue as new; default: the server's own limit. */
  readonly suggestContinueAsNewAt?: number;
}

/** Starts scripted workers, on the test run's Temporal server unless it has to be configured. */
export async function startScriptedStack({
  script = { reward: () => 1 },
  workflowBundle,
  suggestContinueAsNewAt,
}: ScriptedStackOptions = {}): Promise<ScriptedStack> {
  await using undo = new AsyncDisposableStack();
  const home = await mkdtemp(join(tmpdir(), 'temper-scripted-'));
  undo.defer(() => rm(home, { recursive: true, force: true }));
  const server =
    suggestContinueAsNewAt === undefined
      ? await startTestServer()
      : await startOwnTestServer({
          dynamicConfig: [`limit.historyCount.suggestContinueAsNew=${suggestContinueAsNewAt}`],
        });
  undo.defer(() => server.close());
  // The workers read each part of the script when they need it, so a test may change the script at any time.
  const played = new Proxy(script, { get: (_, part: keyof Script) => stack.script[part] });
  const workers = await startScriptedWorkers(server, home, played, { workflowBundle });
  undo.defer(() => workers.close());
  const steps = undo.move();
  const stack: ScriptedStack = { home, server, workers, script, close: () => steps.disposeAsync() };
  return stack;
}
