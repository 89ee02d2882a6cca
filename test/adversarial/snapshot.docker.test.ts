import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { zstdDecompressSync } from 'node:zlib';
import { type HarborTask, readHarborTask } from '../../infra/harbor/harbor-task.ts';
import type { Snapshot } from '../../workflows/contracts/snapshot.ts';
import { treeOf } from '../helpers/sandbox/workspaces.ts';
import { createPipeline, type Pipeline, secret } from './pipeline.ts';

/** A task whose tests get all that the agent changed. */
function carried(test: string, grading = '', agent = ''): HarborTask {
  const toml = `${agent}[environment]\ndocker_image = "temper-tasks:bookworm"\nstorage_mb = 256\n[grading]\nsandbox = "snapshot"\n${grading}`;
  return readHarborTask(
    treeOf({
      'task.toml': toml,
      'instruction.md': 'Do it.\n',
      'environment/workspace/kept.txt': 'kept\n',
      'environment/workspace/gone.txt': 'gone\n',
      'environment/workspace/src/gone.py': 'gone\n',
      'environment/workspace/golden.txt': 'golden\n',
      'tests/test.sh': `echo 0 >/logs/verifier/reward.txt\n${test}\n`,
    }),
  );
}

const reward = 'echo 1 >/logs/verifier/reward.txt';

describe('tests in a fresh sandbox with all that the agent changed', () => {
  let pipeline: Pipeline;
  before(async () => {
    pipeline = await createPipeline('docker');
  });
  after(async () => {
    await pipeline?.[Symbol.asyncDispose]();
  });

  it('see its files anywhere, its links, modes and deletions, and none of its processes', async () => {
    const agent = {
      files: { 'made/deep/new.txt': 'new\n' },
      script: `rm gone.txt; rm -r src; echo mine >golden.txt; mkdir -p /tmp/out ~/.local/bin
printf '#!/bin/sh\\necho tool\\n' >~/.local/bin/tool; chmod 755 ~/.local/bin/tool
echo data >/tmp/out/a; ln /tmp/out/a /tmp/out/hard; ln -s a /tmp/out/soft; chmod 600 /tmp/out/a; echo 1 >"/tmp/out/$(printf '\\303\\251')"
for i in $(seq 20); do echo $i >/tmp/many$i; done
setsid sleep 4321 </dev/null >/dev/null 2>&1 & disown`,
    };
    const test = `set -ex
[ "$(ls /workspace)" = "golden.txt
kept.txt
made" ]; [ "$(cat /workspace/made/deep/new.txt)" = new ]; [ "$(cat /workspace/golden.txt)" = golden ]
[ "$(stat -c %a:%U /tmp/out/a)" = 600:agent ]; [ /tmp/out/a -ef /tmp/out/hard ]; [ "$(readlink /tmp/out/soft)" = a ]
[ -e "/tmp/out/$(printf '\\303\\251')" ]; [ "$(cat /tmp/many20)" = 20 ]; [ "$(stat -c %a /tmp)" = 1777 ]
[ "$(/home/agent/.local/bin/tool)" = tool ]; [ "$(stat -c %U /workspace /home/agent | sort -u)" = agent ]
! pgrep -x -f "sleep 4321" >/dev/null; [ ! -e /root/base.git ]; [ "$(ls /logs/verifier)" = reward.txt ]
${reward}`;
    const {
      reward: got,
      verdict,
      log,
    } = await pipeline.runSnapshot(carried(test, 'protected = ["golden.txt"]\n'), agent);
    assert.equal(got, 1, log);
    assert.equal(verdict.exposure, 'snapshot');
    assert.deepEqual(verdict.restored, { count: 1, paths: ['golden.txt'] });
  });

  it('hold no secret of the session, in whatever form it was left', async () => {
    const script = `echo before ${secret} after >/tmp/plain; printf 'ab%s' ${secret} | base64 -w0 >/tmp/encoded
printf %s ${secret} | od -An -tx1 | tr -d ' \\n' >~/digits; echo x >/tmp/${secret}; ln -s /${secret} ~/link; mkdir -p .git; echo ${secret} >.git/note`;
    const { snapshot, log } = await pipeline.runSnapshot(
      carried('cat /tmp/plain /tmp/encoded; ls /tmp; readlink /home/agent/link'),
      {
        script,
      },
    );
    const bytes = await bytesOf(snapshot);
    const forms = [
      secret,
      Buffer.from(`ab${secret}`).toString('base64').slice(4, -4),
      Buffer.from(secret).toString('hex'),
    ];
    for (const form of forms) {
      assert.ok(!bytes.includes(form), form);
      assert.ok(!log.includes(form), log);
    }
    assert.match(log, /^before 0+ after\n/);
  });

  it('are not led by what the agent put where the tests and their results will be', async () => {
    const script = `ln -s /tmp/mine /logs/agent/verifier; mkdir -p /tmp/mine; echo 1 >/tmp/mine/reward.txt
rm -rf /workspace/* /workspace/.git; ln -s /logs /workspace/logs; chmod 000 /home/agent`;
    const { reward: got, verdict } = await pipeline.runSnapshot(carried('[ -e /workspace/kept.txt ] && exit 1'), {
      script,
    });
    assert.deepEqual([got, verdict.kind, verdict.value], [0, 'graded', 0]);
  });

  it('are refused for more than the limit, and say so', async () => {
    const script = 'head -c 70000000 /dev/zero >/tmp/large';
    const { reward: got, verdict, log, flags, snapshot } = await pipeline.runSnapshot(carried(reward), { script });
    assert.deepEqual([got, verdict.kind, flags, snapshot.parts], [0, 'patch-failed', ['bulk'], []]);
    assert.match(log, /above 64 MB \(TEMPER_SNAPSHOT_MB\)/);
  });

  describe('of an agent that is root', () => {
    const asRoot = (test: string, grading = ''): HarborTask => carried(test, grading, '[agent]\nuser = "root"\n');

    it('see accounts, programs and directories as it left them', async () => {
      const script = `useradd -m worker && echo hi >/home/worker/note && chown worker /home/worker/note
rm /usr/bin/xz; rm -r /usr/share/doc; mkdir /usr/share/doc; echo new >/usr/share/doc/only
for i in $(seq 30); do printf '#!/bin/sh\necho '$i >/usr/local/bin/made$i; chmod 755 /usr/local/bin/made$i; done`;
      const test = `set -ex
[ "$(stat -c %U /home/worker/note)" = worker ]; su worker -c true; [ ! -e /usr/bin/xz ]; [ "$(ls /usr/share/doc)" = only ]
[ "$(made30)" = 30 ]; ${reward}`;
      const { reward: got, log } = await pipeline.runSnapshot(asRoot(test), { script });
      assert.equal(got, 1, log);
    });

    it('meet no process, no job and no service of it, and believe one that they let live', async () => {
      const script = `printf '* * * * * root echo 1 >/logs/verifier/reward.txt\n' >/etc/cron.d/win
setsid sh -c 'while :; do echo 1 >/logs/verifier/1; mv /logs/verifier/1 /logs/verifier/reward.txt; sleep 0.1; done' </dev/null >/dev/null 2>&1 &
mkdir -p /srv/lies; echo right >/srv/lies/answer
setsid python3 -m http.server 8123 --bind 127.0.0.1 --directory /srv/lies </dev/null >/dev/null 2>&1 &
until python3 -c 'import urllib.request as r; r.urlopen("http://127.0.0.1:8123/answer")' 2>/dev/null; do sleep 0.1; done`;
      const ask = `sleep 1; python3 -c 'import urllib.request as r; assert r.urlopen("http://127.0.0.1:8123/answer").read() == b"right\\n"'`;
      const { reward: got, log } = await pipeline.runSnapshot(asRoot(`${ask} && ${reward}`), { script });
      assert.equal(got, 0, log);
      const same = { ...asRoot(`${ask} && ${reward}`), gradedIn: 'same', keepProcesses: true } as const;
      const believed = await pipeline.runInPlace(same, { script });
      assert.equal(believed.reward, 1, JSON.stringify(believed.verdict));
    });

    it('are fooled by an interpreter that it replaced', async () => {
      const script = `printf '#!/bin/sh\nexit 0\n' >/usr/bin/python3`;
      const task = asRoot(`python3 -c 'raise SystemExit(1)' && ${reward}`);
      const { reward: got, log, verdict } = await pipeline.runSnapshot(task, { script });
      assert.deepEqual([got, verdict.exposure], [1, 'snapshot'], log);
      assert.equal((await pipeline.run({ ...task, gradedIn: 'fresh' }, { script })).reward, 0);
    });
  });

  async function bytesOf({ parts }: Snapshot): Promise<Buffer> {
    return zstdDecompressSync(Buffer.concat(await Promise.all(parts.map((part) => pipeline.store.get(part)))));
  }
});
