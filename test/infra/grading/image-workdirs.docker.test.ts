import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import Docker from 'dockerode';
import { captureDiff } from '../../../infra/grading/capture/capture-diff.ts';
import { applyPatch } from '../../../infra/grading/patch/apply-patch.ts';
import { prepareWorkspace } from '../../../infra/grading/workspace/prepare-workspace.ts';
import { readHarborTask } from '../../../infra/harbor/harbor-task.ts';
import { createDockerProvider } from '../../../infra/sandbox/docker/provider.ts';
import type { Sandbox } from '../../../infra/sandbox/sandbox.ts';
import { buildImage, removeImage } from '../../adversarial/odd-images.ts';
import { pruneBuilt } from '../../helpers/sandbox/built-images.ts';
import { treeOf } from '../../helpers/sandbox/workspaces.ts';
import { createFileStore } from '../../helpers/store/file-store.ts';

const stack = `workdirs-${process.pid}`;
const docker = new Docker();
const provider = createDockerProvider({ stack });
const root = mkdtempSync(join(tmpdir(), 'temper-workdirs-'));
const store = createFileStore(root);
const signal = AbortSignal.timeout(3_600_000);
const images = new Set<string>();
const sandboxes = new Set<string>();
const limits = { cpus: 1, memoryMb: 512, diskMb: 256, pids: 128 } as const;

after(async () => {
  for (const name of sandboxes) await provider.remove(name);
  for (const image of images) await removeImage(image);
  await pruneBuilt(docker, stack);
  rmSync(root, { recursive: true, force: true });
});

async function sandboxOf(image: string, workdir: string, root = false): Promise<Sandbox> {
  const name = `${stack}-${sandboxes.size}`;
  sandboxes.add(name);
  const expiresAtMs = Date.now() + 600_000;
  const labels = { stack, run: 'run', rollout: name, epoch: 1, purpose: 'agent', expiresAtMs } as const;
  return provider.ensure({ name, image, labels, ...limits, workdir, mounts: [], ...(root && { root }) }, signal);
}

async function said(sandbox: Sandbox, account: 'agent' | 'grader', cwd: string, script: string): Promise<string> {
  const request = { account, cwd, env: {}, timeoutMs: 60_000, maxOutputBytes: 2 ** 16 } as const;
  const { stdout, stderr } = await sandbox.exec({ ...request, argv: ['sh', '-c', script] }, signal);
  return `${stdout}${stderr}`;
}

interface Case {
  readonly lines: string;
  readonly workdir: string;
  readonly toml?: string;
  /** A script of the agent in the workdir, and one of the tests there, in a fresh sandbox, with what it prints. */
  readonly agent: string;
  readonly tests: string;
  readonly prints: string;
}

/** Builds an image from a task's Dockerfile, has an agent work in it, and looks at the work in a fresh sandbox. */
async function solved({ lines, workdir, toml = '', agent, tests, prints }: Case): Promise<void> {
  const Dockerfile = `FROM temper-tasks:bookworm\nENV TEST=${stack}\n${lines}\n`;
  const task = readHarborTask(
    treeOf({
      'task.toml': `version = "1.0"\n${toml}`,
      'instruction.md': 'Do it.\n',
      'tests/test.sh': 'true\n',
      'environment/Dockerfile': Dockerfile,
    }),
  );
  assert.equal(task.description.workdir, workdir);
  assert.ok(task.build !== null);
  const asked = { task: 'some-task', image: task.description.image, source: task.build };
  const image = await provider.prepare(asked, () => undefined, signal);
  images.add(image);
  const isRoot = task.description.user === 'root';
  const [ofAgent, fresh] = [await sandboxOf(image, workdir, isRoot), await sandboxOf(image, workdir, isRoot)];
  const { baseCommit } = await prepareWorkspace(ofAgent, task, { workdir, keep: true }, signal);
  await prepareWorkspace(fresh, task, { workdir, keep: false }, signal);
  assert.equal(await said(ofAgent, 'agent', workdir, agent), '');
  const diff = await captureDiff(ofAgent, store, { workdir, baseCommit, failedBefore: false }, signal);
  const patch = await store.get(diff.patch.digest);
  assert.equal((await applyPatch(fresh, workdir, patch, signal)).applied, 'exact', String(patch));
  assert.equal(await said(fresh, 'grader', workdir, tests), prints);
}

describe('the workdir of an image that temper builds', () => {
  it('may belong to another account, in a home, with a repository', () =>
    solved({
      lines:
        'RUN useradd -m -u 1001 dev\nENV APP=app\nUSER dev\nWORKDIR /home/dev/$APP\nRUN git init -q . && echo a >a && git add -A && git -c user.name=a -c user.email=a@b commit -qm a \\\n  # The builder joins the next line to the command.',
      workdir: '/home/dev/app',
      agent: 'echo fixed >done.txt && echo b >>a && git log --format=%s | grep -qx a',
      tests: 'cat done.txt a',
      prints: 'fixed\na\nb\n',
    }));

  it('may be read-only, closed, a volume and a link', () =>
    solved({
      lines:
        'RUN useradd dev && mkdir -p /srv/real/below && cd /srv/real && echo a >a && echo s >secret && echo x >below/x && chmod 444 a && chmod 600 secret && chown -R dev . && chmod 500 below && chmod 555 . && ln -s /srv/real /app\nVOLUME /app\nWORKDIR /app',
      workdir: '/app',
      agent: 'echo fixed >done.txt && echo y >below/y && rm a && cat secret >/dev/null',
      tests: 'cat done.txt below/y /srv/real/done.txt; ls a 2>/dev/null; stat -c %a below/x secret',
      prints: 'fixed\ny\nfixed\n644\n644\n',
    }));

  it('may belong to another account than a root agent', () =>
    solved({
      lines:
        'RUN useradd dev && mkdir /app && cd /app && git init -q . && echo a >a && git add -A && git -c user.name=a -c user.email=a@b commit -qm a && chown -R dev /app\nWORKDIR /app',
      workdir: '/app',
      toml: '[agent]\nuser = "root"\n',
      agent: 'echo fixed >done.txt',
      tests: 'cat done.txt && stat -c %U .',
      prints: 'fixed\ndev\n',
    }));

  it('has the arguments of the platform in its build', () =>
    solved({
      lines:
        'ARG TARGETPLATFORM TARGETARCH\nRUN mkdir /app && echo "$TARGETPLATFORM $TARGETARCH" >/app/platform\nWORKDIR /app',
      workdir: '/app',
      agent: 'echo fixed >done.txt',
      tests: 'cat platform',
      prints: process.arch === 'arm64' ? 'linux/arm64 arm64\n' : 'linux/amd64 amd64\n',
    }));
});

describe('an image with a name', () => {
  const named = async (name: string, lines: string): Promise<string> => {
    const image = await buildImage(`${name}-workdirs`, `FROM temper-tasks:bookworm\n${lines}\n`);
    images.add(image);
    return image;
  };

  it('is refused with what to change where its workdir cannot be given to an agent', async () => {
    const cases: readonly (readonly [name: string, lines: string, message: RegExp, workdir?: string])[] = [
      [
        'owner',
        'RUN useradd dev && mkdir /app && chown dev /app',
        /belongs to another account; add RUN chown -R root:root \/app as root/,
      ],
      [
        'closed',
        'RUN mkdir /app && echo >/app/a && chmod 600 /app/a',
        /not every account may read it; add RUN chmod -R a\+rX \/app/,
      ],
      [
        'volume',
        'RUN mkdir /app && echo >/app/a\nVOLUME /app',
        /it is a volume of the image; make the image without VOLUME \/app/,
      ],
      [
        'link',
        'RUN mkdir /srv/real && ln -s /srv/real /app',
        /it is a symbolic link; name the directory that it leads to/,
      ],
      [
        'above',
        'RUN mkdir /root/app && echo >/root/app/a',
        /a directory above it is closed to other accounts, as \/root is; move the work to a directory such as \/app, or let/,
        '/root/app',
      ],
    ];
    for (const [name, lines, message, workdir = '/app'] of cases) {
      const image = await named(name, lines);
      await assert.rejects(sandboxOf(image, workdir), { type: 'UnsupportedTask', message }, name);
    }
  });

  it('may have a workdir with read-only directories', async () => {
    const image = await named(
      'read-only',
      'RUN mkdir -p /app/below && echo a >/app/a && chmod 444 /app/a && chmod 555 /app/below /app',
    );
    const sandbox = await sandboxOf(image, '/app');
    const script = 'echo b >b && echo c >below/c && rm a && ls . below && echo all';
    assert.equal(await said(sandbox, 'agent', '/app', script), '.:\nb\nbelow\n\nbelow:\nc\nall\n');
  });

  it('is refused by the programs that it lacks', async () => {
    const image = await named('no-tar', 'RUN rm -f /bin/tar /usr/bin/tar');
    await assert.rejects(sandboxOf(image, '/app'), { type: 'UnsupportedTask', message: /to have tar, .* got none/ });
    const incomplete = await named('no-bash', 'RUN rm -f /bin/bash /usr/bin/bash /usr/bin/git');
    const task = readHarborTask(
      treeOf({ 'task.toml': '[environment]\ndocker_image = "x"\n', 'instruction.md': 'x', 'tests/test.sh': 'true' }),
    );
    const sandbox = await sandboxOf(incomplete, '/app');
    await assert.rejects(prepareWorkspace(sandbox, task, { workdir: '/app', keep: true }, signal), {
      type: 'UnsupportedTask',
      message: /to have bash, find and git, got one without bash, git;/,
    });
  });
});
