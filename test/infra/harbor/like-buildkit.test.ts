import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { readBuildContext } from '../../../infra/harbor/build-context.ts';
import { likeBuildKit } from '../../../infra/harbor/like-buildkit.ts';
import { treeOf } from '../../helpers/sandbox/workspaces.ts';

const amd64 = { os: 'linux', architecture: 'amd64' } as const;
const arm64 = { os: 'linux', architecture: 'arm64' } as const;

describe("a Dockerfile for the daemon's builder, as BuildKit reads it", () => {
  it('is the same where both builders read it alike', () => {
    const source =
      '# syntax=x\r\nARG A=1\r\nFROM a:$A AS one\r\nWORKDIR /app\r\nUSER dev\r\nRUN x\r\nUSER root\nWORKDIR /b\n';
    assert.equal(likeBuildKit(source, amd64), source);
  });

  it('has the arguments of the platform', () => {
    assert.equal(
      likeBuildKit('# syntax=x\nFROM a\nARG TARGETARCH\nARG TARGETPLATFORM BUILDOS\nRUN x\n', amd64),
      '# syntax=x\nARG BUILDOS="linux"\nARG TARGETPLATFORM="linux/amd64"\nARG TARGETARCH="amd64"\nFROM a\nARG TARGETARCH\nARG TARGETPLATFORM BUILDOS\nRUN x\n',
    );
    assert.equal(
      likeBuildKit('ARG TARGETARCH OTHER\nFROM a-$TARGETARCH\n', arm64),
      'ARG TARGETARCH="arm64"\nARG TARGETARCH="arm64" OTHER\nFROM a-$TARGETARCH\n',
    );
    // A default in a stage comes before the value of the platform.
    assert.match(
      likeBuildKit('FROM a\nARG TARGETARCH=mips\n', amd64),
      /^ARG TARGETARCH="amd64"\nFROM a\nARG TARGETARCH=mips\n$/,
    );
    const { bases } = readBuildContext(treeOf({ Dockerfile: `FROM x-$\{TARGETOS}\n` }), 600);
    assert.deepEqual(bases, [{ image: 'x-linux', from: 'registry' }]);
  });

  it('has stages for the platform of its host alone', () => {
    assert.equal(
      likeBuildKit('FROM --platform=$BUILDPLATFORM \\\n  a AS one\nRUN x\n', arm64),
      'ARG BUILDPLATFORM="linux/arm64"\nFROM a AS one\nRUN x\n',
    );
    const named = 'FROM --platform=linux/amd64 a\nFROM --platform=amd64 b\n';
    assert.equal(likeBuildKit(named, amd64), named);
    assert.equal(likeBuildKit(named, arm64), named);
    assert.equal(
      likeBuildKit('ARG P=linux/amd64\nFROM --platform=$P a\n', arm64),
      'ARG P=linux/amd64\nFROM --platform=linux/amd64 a\n',
    );
    for (const platform of ['linux/arm64', 'arm64', 'linux/s390x', 'windows/amd64', '$UNSET'])
      assert.throws(() => likeBuildKit(`FROM --platform=${platform} a\n`, amd64), {
        type: 'UnsupportedTask',
        message: /expected a stage for linux\/amd64, the platform of its host, got "FROM --platform=/,
      });
  });

  it('gives a stage the arguments of the one that it starts from', () => {
    const inherited = `ARG V="1"\nARG W="x 1 \\$"\nARG H="$\{HOME}/y"\n`;
    assert.equal(
      likeBuildKit(
        'FROM a AS one\nARG V=1\nARG W="x $V \\$" H=$HOME/y\nENV V=2\nFROM one AS two\nRUN x\nFROM two\n',
        amd64,
      ),
      `FROM a AS one\nARG V=1\nARG W="x $V \\$" H=$HOME/y\nENV V=2\nFROM one AS two\n${inherited}RUN x\nFROM two\n${inherited}`,
    );
  });

  it('has no volumes, whose files the builder would drop', () => {
    assert.equal(likeBuildKit('FROM a\nVOLUME /app \\\n  /b\nRUN x\n', amd64), 'FROM a\n\nRUN x\n');
  });

  it('gives the directory of a WORKDIR to the account of its stage', () => {
    const owned = (path: string, user: string) =>
      new RegExp(`^USER root\\nRUN \\["sh","-c",".*","sh","${path}","${user}"\\]\\nUSER ${user}\\nWORKDIR`, 'm');
    assert.match(likeBuildKit('FROM a\nUSER dev\nWORKDIR /home/dev/app\n', amd64), owned('/home/dev/app', 'dev'));
    assert.match(likeBuildKit('FROM a AS b\nARG U=dev\nUSER $U\nFROM b\nWORKDIR app\n', amd64), owned('app', 'dev'));
    const ofRoot = 'FROM a\nUSER root:root\nWORKDIR /a\nUSER 0\nWORKDIR /b\nFROM c\nWORKDIR /d\n';
    assert.equal(likeBuildKit(ofRoot, amd64), ofRoot);
  });
});
