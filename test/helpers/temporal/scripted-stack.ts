import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { WorkflowBundleOption as WorkflowBundle } from '@temporalio/worker';
import { type Script, type ScriptedWorkers, startScriptedWorkers } from './scripted-activities.ts';
import { startTestServer, type TestServer } from './temporal.ts';

/** Scripted workers with a home and a Temporal server of their own, for the tests of one `describe`. */
export interface ScriptedStack {
  readonly home: string;
  readonly server: TestServer;
  readonly workers: ScriptedWorkers;
  /** What rollouts do from now on: each test may set its own. */
  script: Script;
  close(): Promise<void>;
}

/** `workflowBundle`: workflows that were changed for a test. */
export async function startScriptedStack(
  script: Script = { reward: () => 1 },
  workflowBundle?: WorkflowBundle,
): Promise<ScriptedStack> {
  await using undo = new AsyncDisposableStack();
  const home = await mkdtemp(join(tmpdir(), 'temper-scripted-'));
  undo.defer(() => rm(home, { recursive: true, force: true }));
  const server = await startTestServer();
  undo.defer(() => server.close());
  // The workers ask for each part of the script when they need it, and so find what the test has set by then.
  const played = new Proxy(script, { get: (_, part: keyof Script) => stack.script[part] });
  const workers = await startScriptedWorkers(server, home, played, workflowBundle);
  undo.defer(() => workers.close());
  const steps = undo.move();
  const stack: ScriptedStack = { home, server, workers, script, close: () => steps.disposeAsync() };
  return stack;
}
