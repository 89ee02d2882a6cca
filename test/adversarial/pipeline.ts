import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createRuntime, runtimeTarget } from '../../infra/agents/runtime.ts';
import { judgeArtifacts } from '../../infra/grading/artifacts/judge-artifacts.ts';
import { keepArtifacts } from '../../infra/grading/artifacts/keep-artifacts.ts';
import { captureDiff } from '../../infra/grading/capture/capture-diff.ts';
import { evaluate } from '../../infra/grading/evaluate.ts';
import { evaluateInPlace } from '../../infra/grading/evaluate-in-place.ts';
import type { EvaluationHost } from '../../infra/grading/evaluation.ts';
import { createKnownRuns } from '../../infra/grading/evidence/known-runs.ts';
import { judgeDiff } from '../../infra/grading/judge-diff.ts';
import { judgeInPlace } from '../../infra/grading/judge-in-place.ts';
import { judgeSnapshot } from '../../infra/grading/snapshot/judge-snapshot.ts';
import { keepSnapshot } from '../../infra/grading/snapshot/keep-snapshot.ts';
import { createVerdictCache } from '../../infra/grading/verdict-cache.ts';
import { prepareWorkspace } from '../../infra/grading/workspace/prepare-workspace.ts';
import type { HarborTask } from '../../infra/harbor/harbor-task.ts';
import { createHelperSpawner } from '../../infra/process/spawner/through-helper.ts';
import { createDockerProvider } from '../../infra/sandbox/docker/provider.ts';
import { wasEndedInside } from '../../infra/sandbox/failure.ts';
import { byImage } from '../../infra/sandbox/image-environment.ts';
import { createLocalProvider } from '../../infra/sandbox/local/provider.ts';
import { prepareImage } from '../../infra/sandbox/prepare-image.ts';
import type { Sandbox, SandboxKind, SandboxProvider, SandboxPurpose } from '../../infra/sandbox/sandbox.ts';
import type { Store } from '../../infra/store/store.ts';
import { flagsOfRollout } from '../../workflows/algorithms/flags.ts';
import { rewardOf } from '../../workflows/algorithms/reward.ts';
import type { BlobRef } from '../../workflows/contracts/blob.ts';
import type { Diff } from '../../workflows/contracts/diff.ts';
import type { Trick } from '../../workflows/contracts/flags.ts';
import type { Snapshot } from '../../workflows/contracts/snapshot.ts';
import type { Verdict } from '../../workflows/contracts/verdict.ts';
import { treeOf } from '../helpers/sandbox/workspaces.ts';
import { createFileStore, createRecords } from '../helpers/store/file-store.ts';
import { asStage, leaveRunning, type StageTry } from './stages.ts';

/* A rollout without its workflow: real sandboxes, a script instead of the agent, and the real grader. */

/** An agent that writes files into its workspace, and then runs a script there. */
export interface ScriptedAgent {
  readonly files?: Readonly<Record<string, string>>;
  readonly script?: string;
  /** The answer that it records with a host tool. */
  readonly answer?: string;
}

export interface Evaluated {
  readonly reward: number;
  readonly flags: readonly Trick[];
  readonly verdict: Verdict;
  /** The captured patch, in latin-1. */
  readonly patch: string;
  /** The output of the tests, in latin-1. */
  readonly log: string;
}

export interface Pipeline extends AsyncDisposable {
  readonly store: Store;
  run(task: HarborTask, agent: ScriptedAgent): Promise<Evaluated>;
  /** Evaluates the agent's work as a host does in an activity attempt, the first by default, which may throw; also a snapshot. */
  evaluate(task: HarborTask, agent: ScriptedAgent, attempt?: number): Promise<Verdict>;
  /** The sandboxes of evaluations that were reported as left behind. */
  readonly left: readonly string[];
  /**
   * Evaluates the agent's work in its own sandbox; `again` as by a second attempt while the tests of the first one still run,
   * which wait for the file `testsMayEnd`.
   */
  runInPlace(task: HarborTask, agent: ScriptedAgent, again?: boolean): Promise<Evaluated>;
  /** Evaluates all that the agent changed in its sandbox, in a fresh one. */
  runSnapshot(task: HarborTask, agent: ScriptedAgent): Promise<Evaluated & { readonly snapshot: Snapshot }>;
  /** Evaluates the files of the agent at these paths, in a sandbox of the tests' own. */
  runArtifacts(task: HarborTask, agent: ScriptedAgent, paths: readonly string[]): Promise<Evaluated>;
  /** Evaluates a patch that no capture wrote. */
  judge(task: HarborTask, patch: string): Promise<Evaluated>;
}

/** The secret of the agents' sessions. */
export const secret = 'a-secret-of-a-session';
const agentTimeoutMs = 300_000;
const testTimeoutMs = 120_000;
const toKeep = { secrets: [secret], leftOut: [], mostBytes: 2 ** 26 } as const;
const size = { cpus: 1, memoryMb: 512, diskMb: 256, pids: 128 } as const;

/** The sandboxes of each kind but those that a test opens itself. */
export const providers: Readonly<Partial<Record<SandboxKind, OpenProvider>>> = {
  docker: (stack) => createDockerProvider({ stack }),
  local: (stack, home) => createLocalProvider({ root: join(home, 'boxes'), stack, spawner: createHelperSpawner() }),
};

export type OpenProvider = (stack: string, home: string) => SandboxProvider;

/** `atEnd` sees each sandbox that the pipeline made, before that is removed. */
export async function createPipeline(
  kind: SandboxKind,
  open = providers[kind],
  atEnd: (sandbox: Sandbox) => Promise<void> = async () => undefined,
): Promise<Pipeline> {
  const stack = `adversarial-${process.pid}`;
  const home = await mkdtemp(join(tmpdir(), 'temper-adversarial-'));
  const provider = open?.(stack, home) ?? assert.fail(`give the sandboxes of kind ${kind}`);
  const runtime = kind === 'local' ? await createRuntime({ cacheDir: join(home, 'cache') }).prepare() : null;
  const mounts = runtime === null ? [] : [{ ...runtime, readOnly: true as const }];
  const path = runtime === null ? null : `${runtimeTarget}/bin:/usr/bin:/bin`;
  const store = createFileStore(join(home, 'store'));
  const { signal } = new AbortController();
  let count = 0;

  const inSandbox = async <T>(
    purpose: SandboxPurpose,
    { description, build }: HarborTask,
    work: (sandbox: Sandbox) => Promise<T>,
  ): Promise<T> => {
    const name = `${stack}-${count++}`;
    const expiresAtMs = Date.now() + 600_000;
    const labels = { stack, run: 'run', rollout: name, epoch: 1, purpose, expiresAtMs };
    const named = { ...description, id: stack };
    const image = await prepareImage({ store, provider }, { task: named, files: { build } }, () => undefined, signal);
    const spec = { name, image, labels, ...size, workdir: description.workdir, mounts };
    const root = description.user === 'root' ? { root: true as const } : {};
    try {
      const sandbox = await provider.ensure({ ...spec, ...root }, signal);
      const result = await work(sandbox);
      await atEnd(sandbox);
      return result;
    } finally {
      await provider.remove(name);
    }
  };

  const produce = (task: HarborTask, agent: ScriptedAgent) => produceThen(task, agent, async (_, diff) => diff);

  const endAgent = async (sandbox: Sandbox, task: HarborTask): Promise<void> => {
    const { state } = await sandbox.wait('agent', { timeoutMs: agentTimeoutMs }, signal);
    assert.equal(state, 'exited');
    if (!task.keepProcesses) await sandbox.kill('agent');
    if (!task.keepProcesses) await sandbox.killProcesses('agent');
  };

  const produceThen = <T>(
    task: HarborTask,
    agent: ScriptedAgent,
    next: (sandbox: Sandbox, diff: Diff) => Promise<T>,
  ): Promise<T> =>
    inSandbox('agent', task, async (sandbox) => {
      const { workdir } = task.description;
      const { baseCommit } = await prepareWorkspace(sandbox, task, { workdir, keep: true }, signal);
      if (task.gradedIn === 'snapshot') await sandbox.changes?.note(signal);
      await sandbox.putFiles({ tree: treeOf(agent.files ?? {}), at: workdir, owner: 'agent' }, signal);
      const command = byImage(['bash', '-c', agent.script ?? 'true']);
      const env = path === null ? {} : { PATH: path };
      await sandbox.start({ key: 'agent', account: 'agent', cwd: workdir, ...command, env }, signal);
      const end = async ({ failedBefore }: StageTry): Promise<Diff> => {
        await endAgent(sandbox, task).catch((error: unknown) => {
          // The capture finds the same.
          if (!wasEndedInside(error)) throw error;
        });
        return captureDiff(sandbox, store, { workdir, baseCommit, failedBefore }, signal);
      };
      return next(sandbox, await asStage(end));
    });

  const snapshotOf = (sandbox: Sandbox): Promise<Snapshot> =>
    asStage(({ attempt }) => keepSnapshot(sandbox, store, { ...toKeep, attempt }, signal));

  const judge = async (task: HarborTask, diff: Diff): Promise<Evaluated> => {
    const verdict = await inSandbox('evaluation', task, async (sandbox) => {
      const { workdir, diskMb } = task.description;
      await prepareWorkspace(sandbox, task, { workdir, keep: false }, signal);
      const judged = { task, diff, workdir, diskMb, timeoutMs: testTimeoutMs, path, subject: 'none', attempt: 1 };
      return (await judgeDiff(sandbox, store, judged, signal)).verdict;
    });
    return describe(diff, verdict);
  };

  const describe = async (diff: Diff, verdict: Verdict): Promise<Evaluated> => {
    const text = async (digest: string): Promise<string> => Buffer.from(await store.get(digest)).toString('latin1');
    return {
      reward: rewardOf(verdict, 'binary'),
      flags: flagsOfRollout({ diff, verdict }).map(({ trick }) => trick),
      verdict,
      patch: await text(diff.patch.digest),
      log: await text(verdict.log.digest),
    };
  };

  const host: EvaluationHost = {
    stack,
    fence: () => null,
    store,
    verdicts: createVerdictCache({ records: createRecords(join(home, 'verdicts')), store }),
    knownRuns: createKnownRuns(),
    isDiskFull: () => false,
    tasks: { open: async ({ id }) => opened.get(id) ?? assert.fail() },
    choose: async () => provider,
    evaluationMounts: async () => mounts,
    pathOf: () => path,
    testNetwork: async () => undefined,
    reportLeft: (name) => left.push(name),
  };
  const left: string[] = [];
  const opened = new Map<string, HarborTask>();
  const bundles = new Map<HarborTask, Promise<BlobRef>>();
  /** Makes the task known to the host, and describes its evaluation. */
  const requestOf = async (files: HarborTask, diff: Diff, { answer }: ScriptedAgent) => {
    const id = `${stack}-${count++}`;
    opened.set(id, files);
    const bundled = bundles.get(files) ?? store.put(Buffer.from(id), 'text/plain');
    bundles.set(files, bundled);
    const bundle = await bundled;
    const task = { ...files.description, id, bundle };
    const epoch = { rollout: id, epoch: 1 };
    const given = answer === undefined ? {} : { answer: await store.put(Buffer.from(answer), 'text/plain') };
    const limitSec = files.description.evaluationTimeoutSec;
    const timeoutMs = limitSec === null ? testTimeoutMs : limitSec * 1000;
    return { epoch, run: 'run', task, sandbox: kind, diff, timeoutMs, ...given };
  };
  const first = { number: 1, report: () => undefined };

  return {
    store,
    left,
    async evaluate(task, agent, number = 1) {
      const { diff, ...kept } = await produceThen(task, agent, async (sandbox, found) => {
        if (task.gradedIn !== 'snapshot') return { diff: found };
        return { diff: found, snapshot: await snapshotOf(sandbox) };
      });
      const request = { ...(await requestOf(task, diff, agent)), ...kept };
      return evaluate(host, request, { ...first, number }, signal);
    },
    run: async (task, agent) => judge(task, await produce(task, agent)),
    runInPlace: (task, agent, again = false) =>
      produceThen(task, agent, async (sandbox, diff) => {
        const { workdir, diskMb } = task.description;
        const work = {
          task,
          diff,
          workdir,
          diskMb,
          timeoutMs: testTimeoutMs,
          path,
          subject: 'none',
          attempt: 1,
          secrets: [secret],
        };
        if (again) await leaveRunning(sandbox, (ending) => judgeInPlace(sandbox, store, work, ending));
        const request = { ...(await requestOf(task, diff, agent)), kind };
        const evaluation = ({ attempt: number }: StageTry) =>
          evaluateInPlace(host, request, { ...first, number, sandbox, secrets: [secret] }, signal);
        return describe(diff, await asStage(evaluation));
      }),
    async runSnapshot(task, agent) {
      const [snapshot, diff] = await produceThen(task, agent, async (sandbox, found) => [
        await snapshotOf(sandbox),
        found,
      ]);
      const verdict = await inSandbox('evaluation', task, async (sandbox) => {
        const { workdir, diskMb } = task.description;
        await prepareWorkspace(sandbox, task, { workdir, keep: false }, signal);
        const work = {
          task,
          diff,
          snapshot,
          workdir,
          diskMb,
          timeoutMs: testTimeoutMs,
          path,
          subject: 'none',
          attempt: 1,
        };
        return (await judgeSnapshot(sandbox, store, work, signal)).verdict;
      });
      return { ...(await describe(diff, verdict)), snapshot };
    },
    async runArtifacts(task, agent, paths) {
      const [artifacts, diff] = await produceThen(task, agent, async (sandbox, found) => [
        await keepArtifacts(sandbox, store, { paths, secrets: [secret], attempt: 1 }, signal),
        found,
      ]);
      const verdict = await inSandbox('evaluation', task, async (sandbox) => {
        const { workdir, diskMb } = task.description;
        await prepareWorkspace(sandbox, task, { workdir, keep: false }, signal);
        const judged = { task, diff, workdir, diskMb, timeoutMs: testTimeoutMs, path, subject: 'none', attempt: 1 };
        const work = { ...judged, artifacts, onSetUp: () => undefined };
        return (await judgeArtifacts(sandbox, store, work, signal)).verdict;
      });
      return describe(diff, verdict);
    },
    async judge(task, text) {
      const patch = await store.put(Buffer.from(text), 'text/x-diff');
      return judge(task, { patch, baseCommit: 'none', files: 1, dropped: 0, tooLarge: false });
    },
    async [Symbol.asyncDispose]() {
      await provider.close();
      await rm(home, { recursive: true, force: true });
    },
  };
}
