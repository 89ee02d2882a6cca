import assert from 'node:assert/strict';
import { it } from 'node:test';
import { killedCode } from '../../../infra/sandbox/exit-status.ts';
import { wasEndedInside } from '../../../infra/sandbox/failure.ts';
import type { LimitHit, ProcessStatus, Sandbox } from '../../../infra/sandbox/sandbox.ts';
import { type Bench, foreground, sh } from './contract.ts';

const agent = { env: {}, account: 'agent' } as const;
const longWait = { timeoutMs: 120_000 };
const untilThere = (path: string): string => `until [ -s ${path} ]; do sleep 0.05; done; exit 0`;

/**
 * Python: each process starts the next one and ends, so that a look at the list of processes comes too late for all of them. It
 * lives until the one before it has disappeared: on a busy machine the dead ones would else reach the limit of processes.
 */
const chain = `import os
alive = os.open('/workspace/alive', os.O_WRONLY | os.O_CREAT | os.O_APPEND)
while True:
    before = os.getpid()
    if os.fork() != 0: os._exit(0)
    os.write(alive, b'x')
    try:
        while True:
            os.kill(before, 0)
            os.sched_yield()
    except ProcessLookupError: pass`;

/** Forks in every process. The first one ends when it cannot start another one, and the others try again for ever. */
const bomb = `exec python3 -c 'import os, time
first = os.getpid()
while True:
    try: os.fork()
    except OSError:
        if os.getpid() == first: os._exit(1)
        time.sleep(0.1)'`;

/** Processes that outlive the command that starts them, and write to the file `alive` as long as they live. */
const daemons = [
  [
    'daemons',
    'daemons that left their parent, cleared their environment and fight back',
    'setsid env -i /bin/sh -c "while :; do /bin/echo x >>/workspace/alive; /bin/sleep 0.05; done" >/dev/null 2>&1 &',
  ],
  ['chain', 'a chain of processes that each live for a moment', `env -i PATH="$PATH" python3 -c "${chain}";`],
] as const;

export function hostileContract(bench: Bench): void {
  const { subject, stack, signal, make } = bench;

  /** Starts an attack, waits for its end or ends it, and expects the sandbox to be usable afterwards. */
  const attack = async (sandbox: Sandbox, script: string, { timeoutMs } = longWait): Promise<ProcessStatus> => {
    await sandbox.start({ ...agent, key: 'attack', argv: sh(script) }, signal);
    const status = await sandbox.wait('attack', { timeoutMs }, signal);
    await sandbox.kill('attack');
    await sandbox.killProcesses('agent');
    const after = await sandbox.exec({ ...foreground, account: 'agent', argv: sh('echo usable') }, signal);
    assert.equal(String(after.stdout), 'usable\n', String(after.stderr));
    return status;
  };
  const assertLimit = (status: ProcessStatus, limit: LimitHit): void => {
    assert.equal(status.state, 'exited');
    assert.notEqual(status.state === 'exited' && status.exitCode, 0);
    if (subject.evidence.includes(limit)) assert.equal(status.state === 'exited' && status.limit, limit);
  };

  it('survives a fork bomb', async () => {
    const sandbox = await make('bomb');
    const status = await attack(sandbox, bomb);
    assert.notEqual(status.state, 'unknown');
    const ended = await sandbox.status('attack');
    assert.equal(ended.state, 'exited');
    if (subject.evidence.includes('pids')) assert.equal(ended.state === 'exited' && ended.limit, 'pids');
  });

  it('ends a process that exceeds the memory', async () => {
    const sandbox = await make('eater');
    assertLimit(await attack(sandbox, `python3 -c 'a = []\nwhile True: a.append(bytearray(1 << 20))'`), 'memory');
  });

  it('blames what runs in a sandbox if its recorder is gone after the memory was full', async () => {
    const sandbox = await make('forgotten');
    // The recorder of a local sandbox is outside, where the sandbox's memory does not matter.
    if (sandbox.kind === 'local' || !subject.evidence.includes('memory')) return;
    const eat = "(python3 -c 'a = bytearray(1 << 30)') 2>/dev/null; echo full >full; sleep 600";
    await sandbox.start({ ...agent, key: 'attack', argv: sh(eat) }, signal);
    await sandbox.exec({ ...foreground, argv: sh(untilThere('/workspace/full')) }, signal);
    await subject.killRecorder(sandbox.name, 'attack');
    const attached = await subject.open(stack).attach(sandbox.name);
    assert.ok(attached);
    await assert.rejects(attached.wait('attack', longWait, signal), wasEndedInside);
  });

  if (!subject.scriptsChecked) attacksOnScripts();

  it('ends a process that fills the disk with many files', async () => {
    const sandbox = await make('fillers');
    const fill = 'n=0; while :; do n=$((n+1)); head -c 4000000 /dev/zero >f$n; sleep 0.2; done';
    const status = await attack(sandbox, fill).catch((error: unknown) => {
      // A cluster may evict the Pod before a busy machine looks at its disk; that counts as the agent's doing as well.
      if (wasEndedInside(error) && error.loss === 'out-of-disk') return null;
      throw error;
    });
    if (status === null) return;
    assertLimit(status, 'disk');
    const { usedMb, limitMb } = await sandbox.diskUsage();
    assert.ok(usedMb > limitMb && usedMb < 40 * limitMb, `got ${usedMb} MB`);
  });

  it('survives an agent that kills every process it can reach', async () => {
    const sandbox = await make('killer');
    const status = await attack(sandbox, 'kill -9 1; kill -TERM 1; kill -9 -1; sleep 1; exit 3');
    assert.equal(status.state, 'exited');
  });

  for (const [name, what, daemon] of daemons) {
    it(`ends ${what}`, async () => {
      const sandbox = await make(name);
      await sandbox.start({ ...agent, key: 'parent', argv: sh(`${daemon} ${untilThere('alive')}`) }, signal);
      assert.deepEqual(await sandbox.wait('parent', longWait, signal), { state: 'exited', exitCode: 0 });
      await sandbox.killProcesses('agent');
      const size = () => sandbox.exec({ ...foreground, argv: sh('wc -c <alive; sleep 0.3; wc -c <alive') }, signal);
      const [before, later] = String((await size()).stdout)
        .trim()
        .split('\n');
      assert.ok(Number(before) > 0);
      assert.equal(before, later);
    });
  }

  it('ends daemons of the grader that left their parent and cleared their environment', async () => {
    const sandbox = await make('grader-daemons');
    const daemon =
      'setsid env -i /bin/sh -c "while :; do /bin/echo 1 >/logs/verifier/reward.txt; /bin/sleep 0.05; done" &';
    const argv = sh(`${daemon} ${untilThere('/logs/verifier/reward.txt')}`);
    const tests = { key: 'tests', account: 'grader', env: {}, argv } as const;
    await sandbox.start(tests, signal);
    assert.deepEqual(await sandbox.wait('tests', longWait, signal), { state: 'exited', exitCode: 0 });
    await sandbox.killProcesses('grader');
    const look = sh('rm -f /logs/verifier/reward.txt; sleep 0.3; ls /logs/verifier');
    const seen = await sandbox.exec({ ...foreground, account: 'grader', argv: look }, signal);
    assert.equal(String(seen.stdout), '', String(seen.stderr));
  });

  it('ends an agent that kills every process that would end it', async () => {
    const sandbox = await make('guard');
    const guard =
      'trap "" TERM INT HUP; for i in 1 2; do ( while :; do kill -9 -1; done ) & done; while :; do kill -9 -1; done';
    await attack(sandbox, guard, { timeoutMs: 500 });
  });

  it('protects its log and its result from the agent', async () => {
    const sandbox = await make('forger');
    const forge =
      'echo honest; for f in 1 2; do truncate -s 0 /proc/self/fd/$f; done; find / -name "exit*" -path "*attack*" 2>/dev/null; rm -rf /.temper/attack; exit 3';
    const status = await attack(sandbox, forge);
    assert.deepEqual(status, { state: 'exited', exitCode: 3 });
    assert.match(String((await sandbox.readLog('attack', { fromByte: 0, maxBytes: 100 })).bytes), /^honest\n/);
  });

  it('records one exit code, whatever the agent writes in place of its own', async () => {
    const sandbox = await make('code-forger');
    // The parent of the agent's command holds the pipe for the exit code, if the sandbox has one.
    const write = '{ head -c 3000000 /dev/zero | tr "\\0" 1; echo; }';
    const forge = `for fd in /proc/$PPID/fd/*; do case $(readlink $fd) in */end.*) ${write} >$fd; esac; done; exit 3`;
    const status = await attack(sandbox, forge);
    assert.equal(status.state, 'exited');
    const { exitCode } = status.state === 'exited' ? status : assert.fail();
    assert.ok([3, killedCode].includes(exitCode), `got ${exitCode}`);
    assert.deepEqual(await sandbox.status('attack'), status);
  });

  it('lets the agent delete its own files', async () => {
    const sandbox = await make('vandal');
    await sandbox.exec({ ...foreground, argv: sh('git init -q . && echo x >f') }, signal);
    const status = await attack(
      sandbox,
      'rm -rf /workspace/.git /workspace/* /home/agent/* 2>/dev/null; ls -A /workspace | wc -l',
    );
    assert.equal(status.state, 'exited');
    assert.equal(String((await sandbox.readLog('attack', { fromByte: 0, maxBytes: 10 })).bytes).trim(), '0');
  });

  it("protects one sandbox's processes from another", async () => {
    const [mine, other] = [await make('victim'), await make('attacker')];
    await mine.start({ ...agent, key: 'job', argv: ['sleep', '600'] }, signal);
    await attack(other, 'kill -9 -1');
    assert.deepEqual(await mine.status('job'), { state: 'running' });
    await mine.kill('job');
  });

  function attacksOnScripts(): void {
    it('ends a process that fills the disk with one file', async () => {
      const sandbox = await make('filler');
      assertLimit(await attack(sandbox, 'exec cat /dev/zero >big'), 'disk');
    });

    it('does not count files from before a process against it', async () => {
      const sandbox = await make('full');
      const { limitMb } = await sandbox.diskUsage();
      const fill = `head -c ${(limitMb - 4) * 1_000_000} /dev/zero`;
      await sandbox.exec({ ...foreground, argv: sh(`${fill} >before1; ${fill} >before2`) }, signal);
      const { usedMb: diskBeforeMb } = await sandbox.diskUsage();
      assert.ok(diskBeforeMb > limitMb, `got ${diskBeforeMb} MB`);
      await sandbox.start({ ...agent, key: 'own', argv: sh(`${fill} >own; sleep 4; exit 3`) }, signal);
      const ended = await sandbox.wait('own', { ...longWait, diskBeforeMb }, signal);
      assert.deepEqual(ended, { state: 'exited', exitCode: 3 });
      await sandbox.start({ ...agent, key: 'more', argv: sh(`${fill} >more; sleep 600`) }, signal);
      assertLimit(await sandbox.wait('more', { ...longWait, diskBeforeMb }, signal), 'disk');
    });
  }
}
