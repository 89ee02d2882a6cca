import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type HarborTask, readHarborTask } from '../../infra/harbor/harbor-task.ts';
import type { SandboxKind } from '../../workflows/contracts/sandbox-kinds.ts';
import { fillSegments } from '../helpers/sandbox/fill-memory.ts';
import { treeOf } from '../helpers/sandbox/workspaces.ts';
import { createPipeline, type OpenProvider, type Pipeline } from './pipeline.ts';

/** A task that the agents here leave undone. */
function undone(grading = ''): HarborTask {
  const toml = `[environment]\ndocker_image = "temper-tasks:bookworm"\nstorage_mb = 256\ncpus = 1\n[grading]\n${grading}`;
  const test = 'echo 0 >/logs/verifier/reward.txt\ngrep -q done /workspace/work && echo 1 >/logs/verifier/reward.txt\n';
  return readHarborTask(
    treeOf({
      'task.toml': toml,
      'instruction.md': 'Do it.\n',
      'environment/workspace/work': 'open\n',
      'tests/test.sh': test,
    }),
  );
}

/** Starts a program in the background that leaves the agent's session, and waits, without a process, for what it is for. */
const leave = (program: string, until: string): string =>
  `cat >/tmp/left.py <<'END'\n${program}\nEND\nsetsid python3 /tmp/left.py </dev/null >/dev/null 2>&1 &\nuntil ${until}; do :; done`;
/** Succeeds once the kernel has ended a process of the sandbox for want of memory. The shell needs no other program for it. */
const isMemoryFull = `{
  for file in /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control; do
    [ -r "$file" ] && while read -r name count; do [ "$name $count" = "oom_kill 0" ] || [ "$name" != oom_kill ] || break 2; done <"$file"
  done; [ "$name" = oom_kill ]; }`;
/** Holds memory in many processes, and makes a new one for each that the kernel ends. At rest they cost the other tests little. */
const holdMemory = leave(
  `import os, time
def hold():
    held = []
    while True:
        held = held[:128] + [bytearray(b"x" * 65536)]
        time.sleep(0.01)
for _ in range(90):
    if os.fork() == 0: hold()
while True:
    try:
        os.wait()
        if os.fork() == 0: hold()
    except OSError: pass`,
  isMemoryFull,
);
/** Forks in every process for ever. */
const forkForEver = leave(
  `import os, time
while True:
    try: os.fork()
    except OSError:
        open("/tmp/full", "w")
        time.sleep(0.1)`,
  '[ -e /tmp/full ]',
);

const attacks = {
  hold: ['holds all memory in processes that begin again', holdMemory],
  fork: ['forks until no process can be started', forkForEver],
  segments: ['fills the memory with what outlives its processes', `${fillSegments}true`],
} as const;
type Attack = keyof typeof attacks;
type Place = 'same' | 'fresh';

/**
 * Checks, in real sandboxes of a kind, the outcome of agents that fill them up. The slow cases, each an attack and the sandbox of its
 * tests, run by hand: TEMPER_TEST_ATTACKS=all.
 */
export function fullSuite(kind: SandboxKind, slow: readonly `${Attack} ${Place}`[], open?: OpenProvider): void {
  const isLeftOut = (attack: Attack, place: Place): boolean =>
    process.env.TEMPER_TEST_ATTACKS !== 'all' && slow.includes(`${attack} ${place}`);
  const concurrency = 2;
  describe(`an agent that leaves no memory or no processes of a ${kind} sandbox to its end`, { concurrency }, () => {
    let pipeline: Pipeline;
    before(async () => {
      pipeline = await createPipeline(kind, open);
    });
    after(async () => {
      await pipeline?.[Symbol.asyncDispose]();
    });

    for (const attack of ['hold', 'fork', 'segments'] as const) {
      const [does, script] = attacks[attack];
      if (!isLeftOut(attack, 'same')) {
        it(`earns nothing in its own sandbox, and is scored, if it ${does}`, async () => {
          const kept = undone('sandbox = "same"\nkeep_processes = true\n');
          const { reward, verdict, log } = await pipeline.runInPlace(kept, { script });
          assert.equal(reward, 0, `${JSON.stringify(verdict)}\n${log}`);
        });
      }

      if (!isLeftOut(attack, 'fresh')) {
        it(`earns nothing in a fresh sandbox, and is scored, if it ${does}`, async () => {
          const { reward, verdict, log } = await pipeline.run(undone(), { script });
          assert.equal(reward, 0, `${JSON.stringify(verdict)}\n${log}`);
          assert.equal(verdict.kind, 'graded');
        });
      }
    }
  });
}
