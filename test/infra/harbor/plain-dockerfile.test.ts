import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { readBuildContext } from '../../../infra/harbor/build-context.ts';
import { readDockerfile } from '../../../infra/harbor/dockerfile.ts';
import { instructions } from '../../../infra/harbor/dockerfile-instructions.ts';
import { plainDockerfile } from '../../../infra/harbor/plain-dockerfile.ts';
import { treeOf } from '../../helpers/sandbox/workspaces.ts';
import { failure } from '../../helpers/tasks/data-set-fixture.ts';

/** The script that a rewritten RUN decodes and runs. */
const decoded = (line: string): string => {
  const [, text = ''] = /printf %s '([^']*)' \| base64 -d/s.exec(line) ?? [];
  return Buffer.from(text, 'base64').toString();
};

describe('a Dockerfile for a builder without here-documents', () => {
  it('is the same if it has none', () => {
    for (const source of [
      'FROM a\r\nRUN b \\\n  && c\n',
      'FROM a\nRUN echo "use <<EOF" && cat <<<word && echo $((1<<2))\n',
      "FROM a\nRUN echo 'a <<B'\n# RUN <<EOF\nRUN sh -c 'cat < /x << y'\n",
    ])
      assert.equal(plainDockerfile(source).source, source);
  });

  it('has the script of a RUN in its command, and none of its lines as instructions', () => {
    const body = 'set -e\nfrom x import y\nADD https://a.example/b /c\n';
    const { source, files, scripts } = plainDockerfile(`FROM a\nRUN <<'EOF'\n${body}EOF\nWORKDIR /app\n`);
    assert.deepEqual(
      instructions(source).map(({ keyword }) => keyword),
      ['FROM', 'RUN', 'WORKDIR'],
    );
    assert.equal(decoded(source), body);
    assert.match(source, /^RUN here=\$\(printf %s '\S+' \| base64 -d\) && eval "\$here"$/m);
    assert.deepEqual([scripts, files.size, readDockerfile(source).workdir], [[body], 0, '/app']);
    assert.deepEqual(readBuildContext(treeOf({ Dockerfile: `FROM a\nRUN <<EOF\n${body}EOF\n` }), 600).bases, [
      { image: 'a', from: 'registry' },
    ]);
  });

  it('keeps command lines that read here-documents, several of them, and their indentation', () => {
    const { scripts } = plainDockerfile(
      'FROM a\nRUN python3 - <<PY && cat >/x <<-"END"\nprint(1)\nPY\n\tone\n\t\ttwo\n\tEND\nRUN true\n',
    );
    assert.deepEqual(scripts, ['python3 - <<PY && cat >/x <<-"END"\nprint(1)\nPY\none\ntwo\nEND\n']);
  });

  it('copies the files of here-documents from its context', () => {
    const { source, files } = plainDockerfile(
      "FROM a\nCOPY --chown=1 <<'one.txt' <<two.sh b /dest/\n$HOME\none.txt\n#!/bin/sh\ntwo.sh\nCOPY --chmod=755 <<EOF /run\nEOF\n",
    );
    assert.equal(
      source,
      'FROM a\nCOPY --chown=1 .temper-here/0/one.txt .temper-here/1/two.sh b /dest/\nCOPY --chmod=755 .temper-here/2/EOF /run\n',
    );
    assert.deepEqual(
      [...files].map(([path, { mode, bytes }]) => [path, mode, String(bytes)]),
      [
        ['.temper-here/0/one.txt', 0o644, '$HOME\n'],
        ['.temper-here/1/two.sh', 0o644, '#!/bin/sh\n'],
        ['.temper-here/2/EOF', 0o644, ''],
      ],
    );
  });

  it('drops what only saves time', () => {
    const source = 'FROM a\nRUN --mount=type=cache,target=/c \\\n  --network=none make\nCOPY --link --chown=1 b /c\n';
    assert.equal(plainDockerfile(source).source, 'FROM a\nRUN --network=none make\nCOPY --chown=1 b /c\n');
  });

  it('is refused where it could not be the same', () => {
    for (const [source, type, message] of [
      ['FROM a\nRUN <<EOF\nx\n', 'MalformedTask', /expected a line EOF at the end of a here-document, got none/],
      ['FROM a\nCOPY <<EOF /b\n$A\nEOF\n', 'UnsupportedTask', /expected quotes around the name .*\(<<'EOF'\)/],
      [`FROM a\nRUN <<EOF\n${'x'.repeat(70_000)}\nEOF\n`, 'UnsupportedTask', /at most 67500 bytes, got "70001 bytes"/],
    ] as const)
      assert.throws(() => plainDockerfile(source), failure(type, message));
  });
});
