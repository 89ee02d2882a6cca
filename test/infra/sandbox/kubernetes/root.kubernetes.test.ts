import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { blamingBrokenPrograms } from '../../../../infra/sandbox/broken-programs.ts';
import { SandboxFailure, wasEndedInside } from '../../../../infra/sandbox/failure.ts';
import { createKubernetesProvider } from '../../../../infra/sandbox/kubernetes/provider.ts';
import type { Sandbox } from '../../../../infra/sandbox/sandbox.ts';
import { openTestCluster } from '../../../helpers/kubernetes/namespace.ts';
import { openTestSandboxes } from '../../../helpers/kubernetes/sandboxes.ts';
import { until } from '../../../helpers/until.ts';
import { foreground, sh } from '../contract.ts';

/** The limit of one call. */
const limit = (): AbortSignal => AbortSignal.timeout(300_000);
const minute = { timeoutMs: 60_000 };

/** Throws every failure but a connection that was cut: a stage is repeated then, until the cluster says why. */
const unlessCut = (error: unknown): void => {
  if (!(error instanceof SandboxFailure) || error.type !== 'SandboxUnavailable') throw error;
};
const endless = (statement: string): string =>
  `exec python3 -c 'import os, time\nwhile True:\n  try: ${statement}\n  except OSError: pass'`;
/** Ends the processes of the keepers' uid, each a moment after it is seen. */
const killKeepers =
  '[(time.sleep(0.3), os.kill(int(p), 9)) for p in os.listdir("/proc") if p.isdigit() and p != "1" and os.stat("/proc/" + p).st_uid == 64001]';

describe('a kubernetes sandbox whose agent is root', { concurrency: 4 }, async () => {
  const { namespace, settings, open, specOf } = await openTestSandboxes('root');
  const { core } = openTestCluster();
  const provider = open();
  const make = (name: string): Promise<Sandbox> => provider.ensure(specOf(name, { root: true }), limit());
  const start = (sandbox: Sandbox, script: string) =>
    sandbox.start({ key: 'agent', argv: sh(script), env: {}, account: 'agent' }, limit());

  it('has the rights of root in a container and none beyond, within the level baseline', async () => {
    const sandbox = await make('rights');
    const asRoot = 'id -u; touch /etc/a && chown daemon /etc/a && stat -c %U /etc/a; echo $HOME';
    for (const account of ['agent', 'grader'] as const) {
      const { stdout } = await sandbox.exec({ ...foreground, account, argv: sh(asRoot) }, limit());
      assert.equal(String(stdout), '0\ndaemon\n/root\n');
    }
    const beyond = 'mknod /tmp/d b 8 0; mount -t tmpfs none /mnt; chroot / unshare -m true; date -s 2001-01-01';
    const { stdout, stderr } = await sandbox.exec({ ...foreground, argv: sh(beyond) }, limit());
    assert.equal(String(stderr).match(/not permitted|denied/gi)?.length, 4, `${stdout} ${stderr}`);
    const rights = sh('grep -E "CapBnd|CapEff|NoNewPrivs" /proc/self/status');
    const status = String((await sandbox.exec({ ...foreground, argv: rights }, limit())).stdout);
    assert.match(status, /CapEff:\s+(\w+)\nCapBnd:\s+\1\nNoNewPrivs:\s+1/);
    const pod = await core.readNamespacedPod({ namespace, name: 'rights' });
    assert.equal(pod.spec?.containers[0]?.securityContext?.allowPrivilegeEscalation, false);
    // Another process finds the same accounts.
    const other = createKubernetesProvider(settings);
    const found = await other.attach(sandbox.name);
    assert.equal(String((await found?.exec({ ...foreground, argv: sh('id -u') }, limit()))?.stdout), '0\n');
    await other.close();
  });

  it('keeps its first process from the agent, whatever account that takes, and keeps no dead processes', async () => {
    const sandbox = await make('first');
    const attack = `
      echo began; exec 2>/dev/null
      for u in 0 64001 64002; do
        as() { setpriv --reuid=$u --regid=$u --clear-groups "$@"; }
        as sh -c 'for s in TERM INT HUP QUIT KILL STOP SEGV ABRT CHLD USR1; do kill -$s 1; done'
        as prlimit --pid 1 --cpu=1:1 && echo "limits as $u"
        as python3 -c 'open("/proc/1/mem", "r+b")' && echo "memory as $u"
        as readlink /proc/1/fd/1 && echo "files as $u"
        as ls /proc/1/root/ && echo "root as $u"
        as python3 -c 'import ctypes, sys; sys.exit(ctypes.CDLL(None).ptrace(16, 1, 0, 0) != 0)' && echo "traced as $u"
      done
      for n in 1 2 3; do (setsid sh -c 'sleep 0.1' &); done; sleep 1
      for n in $(seq 100); do grep -qs "^State:.Z" /proc/[0-9]*/status || break; sleep 0.1; done; grep -l "^State:.Z" /proc/[0-9]*/status
      cp /bin/false /bin/sleep; rm -rf /temper-programs; mv /temper-programs /x; rm -rf /temper-programs/*
      echo over; grep SigCgt /proc/1/status`;
    const result = await sandbox.exec({ ...foreground, timeoutMs: 60_000, argv: sh(attack) }, limit());
    assert.equal(String(result.stdout), 'began\nover\nSigCgt:\t0000000000000000\n');
    assert.equal((await sandbox.exec({ ...foreground, argv: ['true'] }, limit())).exitCode, 0);
  });

  it('ends what the agent left, under whatever account, and keeps its own records', async () => {
    const sandbox = await make('left');
    // The kernel counts the processes of a uid on the whole machine, and other containers run as 65534.
    const leave =
      'echo said; for u in 0 1 54321; do setsid setpriv --reuid=$u --clear-groups sleep 321 >/dev/null 2>&1 & done';
    await start(sandbox, leave);
    assert.equal((await sandbox.wait('agent', minute, limit())).state, 'exited');
    const count = sh('cat /proc/[0-9]*/cmdline | tr "\\0" " " | grep -o "sleep 3[2]1" | wc -l');
    await until(async () => String((await sandbox.exec({ ...foreground, argv: count }, limit())).stdout) === '3\n');
    await sandbox.killProcesses('agent');
    assert.equal(String((await sandbox.exec({ ...foreground, argv: count }, limit())).stdout), '0\n');
    assert.equal(String((await sandbox.readLog('agent', { fromByte: 0, maxBytes: 100 })).bytes), 'said\n');
  });

  const attacks: Readonly<Record<string, string>> = {
    'ends all other processes for ever': endless('os.kill(-1, 9)'),
    'ends each keeper once it has begun': endless(killKeepers),
    'removes all files': 'rm -rf --no-preserve-root / 2>/dev/null; while :; do :; done',
    'has its first process end for memory':
      'echo 1000 >/proc/1/oom_score_adj; echo 0 >/proc/self/oom_score_adj; while :; do tail /dev/zero; done',
  };
  for (const [attack, script] of Object.entries(attacks)) {
    it(`counts an agent that ${attack} as having ended its sandbox`, async () => {
      const sandbox = await make(attack.replaceAll(' ', '-'));
      const use = async (): Promise<void> => {
        // What the attack does not reach at once, it reaches at the next call. It may already reach the call that starts it.
        for (const endMs = Date.now() + 240_000; Date.now() < endMs; ) {
          await start(sandbox, script).catch(unlessCut);
          await sandbox.wait('agent', { timeoutMs: 100 }, limit()).catch(unlessCut);
          await sandbox.exec({ ...foreground, timeoutMs: 20_000, argv: ['true'] }, limit()).catch(unlessCut);
        }
      };
      await assert.rejects(blamingBrokenPrograms(sandbox, use), wasEndedInside);
    });
  }
});
