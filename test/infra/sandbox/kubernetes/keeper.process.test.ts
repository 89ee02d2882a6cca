import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import {
  createFrameDecoder,
  encodeFrame,
  frameKinds,
  type TaskEnd,
  type TaskRequest,
} from '../../../../infra/sandbox/kubernetes/keeper/frames.ts';
import { keeperProgram } from '../../../../infra/sandbox/kubernetes/keeper/program.ts';
import { heldElsewhere } from '../../../../infra/sandbox/kubernetes/keeper-failure.ts';

/** The keeper of one connection to a Pod, whose files are in a directory here. */
async function startKeeper(t: TestContext, directory: string, token: string | null) {
  const settings = JSON.stringify({
    ready: join(directory, 'ready'),
    drop: ['setpriv'],
    holder: join(directory, 'holder'),
  });
  const keeper: ChildProcess = spawn(
    process.execPath,
    ['--input-type=module', '--eval', await keeperProgram(), settings],
    { stdio: ['pipe', 'pipe', 'inherit'] },
  );
  t.after(() => keeper.kill());
  const decode = createFrameDecoder();
  const ready = Promise.withResolvers<void>();
  const ends = new Map<number, PromiseWithResolvers<TaskEnd>>();
  keeper.stdout?.on('data', (chunk: Buffer) => {
    for (const { kind, task, payload } of decode(chunk)) {
      if (kind === frameKinds.ready) ready.resolve();
      if (kind === frameKinds.exit) ends.get(task)?.resolve(JSON.parse(payload.toString()));
    }
  });
  await ready.promise;
  return (request: TaskRequest): Promise<TaskEnd> => {
    const end = Promise.withResolvers<TaskEnd>();
    ends.set(ends.size + 1, end);
    keeper.stdin?.write(encodeFrame(frameKinds.start, ends.size, JSON.stringify({ ...request, by: token })));
    return end.promise;
  };
}

const run = (file: string): TaskRequest => ({
  do: 'run',
  uid: 65_534,
  argv: ['touch', file],
  env: { PATH: '/usr/bin:/bin' },
  stdin: false,
  sentBytes: 0,
});

describe('the keepers of a Pod', { skip: process.getuid?.() !== 0 && 'they need root' }, () => {
  it('obey the last host that has adopted the sandbox, and no other in whatever order their commands come', async (t) => {
    const directory = mkdtempSync(join(tmpdir(), 'keeper-'));
    t.after(() => rmSync(directory, { recursive: true }));
    writeFileSync(join(directory, 'ready'), '');
    const open = join(tmpdir(), `keeper-open-${process.pid}`);
    t.after(() => rmSync(open, { force: true }));
    const [first, second, third, byHand] = await Promise.all(
      ['a/3', 'b/1', 'a/4', null].map((token) => startKeeper(t, directory, token)),
    );
    assert.ok(first && second && third && byHand);
    assert.deepEqual(await first(run(open)), { code: 0 });
    assert.deepEqual(await byHand(run(open)), { code: 0 });

    assert.deepEqual(await second({ do: 'hold', order: 1_000_001 }), { code: 0 });
    rmSync(open);
    const held = { code: 1, heldBy: 'b/1' };
    for (const request of [run(open), { do: 'end-all', uid: 65_534 }, { do: 'hold', order: 1_000_001 }] as const) {
      assert.deepEqual(await first(request), held);
      assert.deepEqual(await byHand(request), held);
    }
    assert.equal(existsSync(open), false);
    assert.deepEqual(await second({ do: 'hold', order: 1_000_001 }), { code: 0 });
    assert.deepEqual(await second(run(open)), { code: 0 });

    assert.deepEqual(await third({ do: 'hold', order: 2_000_001 }), { code: 0 });
    assert.deepEqual(await second(run(open)), { code: 1, heldBy: 'a/4' });
    assert.deepEqual(await second({ do: 'hold', order: 1_000_002 }), { code: 1, heldBy: 'a/4' });
    assert.deepEqual(JSON.parse(readFileSync(join(directory, 'holder'), 'utf8')), { token: 'a/4', order: 2_000_001 });
  });

  it('may be made to refuse by an agent that is root, which is scored', () => {
    assert.equal(heldElsewhere('b/1', false).type, 'HostFenced');
    assert.deepEqual(
      [heldElsewhere('b/1', true).type, heldElsewhere('b/1', true).loss],
      ['SandboxLost', 'ended-inside'],
    );
  });
});
