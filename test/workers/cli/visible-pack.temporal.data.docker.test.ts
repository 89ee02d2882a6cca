import assert from 'node:assert/strict';
import { basename, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { findRequired, resolve } from '../../../infra/grading/resolution/resolve.ts';
import { type LogParserName, logParsers } from '../../../infra/kits/test-logs/index.ts';
import { createDockerProvider } from '../../../infra/sandbox/docker/provider.ts';
import type { FoundTask } from '../../../infra/tasks/find-task.ts';
import { createTasks } from '../../../infra/tasks/tasks.ts';
import { type Validation, validateTasks } from '../../../workers/cli/commands/tasks/validate-tasks.ts';
import type { Verdict } from '../../../workflows/contracts/verdict.ts';
import { type Rollouts, startRollouts } from '../../helpers/rollouts/rollouts.ts';
import { trackOf, tracks, unpackPack, type VisiblePack } from '../../helpers/tasks/visible-pack.ts';

/** `TEMPER_TEST_PACK=all` validates the whole pack, which takes some minutes. */
const wholePack = process.env.TEMPER_TEST_PACK === 'all';
const ofEachTrack = 2;
const summary = /^=+ short test summary info =+$/m;

/** The verdict of a rollout, with the whole log of its tests. */
interface Recorded {
  readonly task: string;
  readonly agent: string;
  readonly verdict: Verdict;
  readonly log: string;
}

describe('tasks of the visible pack, in Docker', () => {
  let rollouts: Rollouts;
  let pack: VisiblePack;
  const validations: Validation[] = [];
  const recorded: Recorded[] = [];

  before(async () => {
    rollouts = await startRollouts((home) => ({
      taskRoots: [join(home, 'pack')],
      provider: createDockerProvider({ stack: 'test-stack' }),
    }));
    pack = await unpackPack(join(rollouts.home, 'pack'));
    const names = new Set(wholePack ? pack.tasks : pack.sample(ofEachTrack));
    const finish = (one: Validation): void => void validations.push(one);
    const options = { sandbox: 'docker' as const, concurrency: 2, repeat: 1, again: false, finish };
    await validateTasks(rollouts.client, tasksOf(names), options, new AbortController().signal);
    for (const { task, oracle, nop } of validations) {
      for (const { rollout, agent } of [...oracle, ...nop]) {
        if (rollout === null) continue;
        const { verdict } = await rollouts.client.workflow
          .getHandle<() => Promise<{ verdict: Verdict | null }>>(rollout)
          .result();
        if (verdict === null) continue;
        recorded.push({ task, agent, verdict, log: String(await rollouts.store.get(verdict.log.digest)) });
      }
    }
  });
  after(() => rollouts?.close());

  async function* tasksOf(names: ReadonlySet<string>): AsyncIterable<FoundTask> {
    const dataSets = { directory: join(rollouts.home, 'cache'), offline: true };
    const tasks = createTasks({ store: rollouts.store, roots: [pack.root], dataSets });
    for await (const found of tasks.scan(`harbor:${pack.root}`)) if (names.has(basename(found.id))) yield found;
  }

  it('are solved by their reference solutions and not by doing nothing', () => {
    const invalid = validations.filter(({ valid }) => !valid).map(({ task, why }) => `${task}: ${why}`);
    assert.deepEqual(invalid, []);
    assert.equal(validations.length, wholePack ? pack.tasks.length : ofEachTrack * Object.keys(tracks).length);
  });

  it("get the same reward from their logs, by temper's parser and rules, as their tests wrote", async () => {
    assert.equal(recorded.length, validations.length * 2);
    const differing: string[] = [];
    for (const { task, agent, verdict, log } of recorded) {
      const required = { ...(await pack.required(task)), rule: 'pass-and-fail' as const };
      const { status, reason } = resolve(required, logParsers.pytest.parse(log), { exitCode: verdict.exitCode });
      if ((status === 'resolved') !== (verdict.value === 1)) {
        differing.push(`${agent} at ${task}: the tests wrote ${verdict.value}, its log is ${status}: ${reason}`);
      }
    }
    assert.deepEqual(differing, []);
  });

  it("get the same status for each test from the runner's own report as from the summary", async () => {
    const differing: string[] = [];
    let compared = 0;
    for (const { task, agent, log } of recorded) {
      const parser = tracks[trackOf(task)];
      if (parser === null) continue;
      const required = { ...(await pack.required(task)), rule: 'pass-and-fail' as const };
      const own = ofFile(parser, log.split(summary, 1)[0] ?? '', required.failToPass[0] ?? '');
      const ofSummary = findRequired(required, logParsers.pytest.parse(log));
      const ofReport = findRequired(required, own);
      compared += ofReport.length;
      for (const [index, { id, status }] of ofSummary.entries()) {
        // In pytest's summary, ` - ` begins the reason of a failure. These summaries give no reasons, but titles may contain it.
        if (id.includes(' - ')) continue;
        const other = ofReport[index]?.status;
        if (other !== status) differing.push(`${agent} at ${task}: ${id} is ${status}, by its report ${other}`);
      }
    }
    assert.ok(compared > 0);
    assert.deepEqual(differing, []);
  });
});

/** Parses a runner's report, with the ids as lists write them: `file::title`. */
function ofFile(parser: LogParserName, report: string, sample: string) {
  const file = sample.slice(0, sample.indexOf('::') + 2);
  const { tests } = logParsers[parser].parse(report);
  return {
    tests: new Map([...tests].map(([id, status]) => [`${file}${id}`, status] as const)),
    failedElsewhere: new Map(),
  };
}
