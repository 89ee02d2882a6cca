import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { builtImageName, readBuildContext } from '../../../infra/harbor/build-context.ts';
import { readHarborTask } from '../../../infra/harbor/harbor-task.ts';
import { treeOf } from '../../helpers/sandbox/workspaces.ts';

const read = (dockerfile: string) => readBuildContext(treeOf({ Dockerfile: dockerfile }), 600);
const basesOf = (dockerfile: string): readonly string[] => read(dockerfile).bases.map(({ image }) => image);

describe('a task whose Dockerfile must be built', () => {
  const files = {
    'task.toml': 'version = "1.0"\n[environment]\nbuild_timeout_sec = 90\n',
    'instruction.md': 'Do it.\n',
    'tests/test.sh': 'true\n',
    'solution/solve.sh': 'true\n',
    'environment/Dockerfile': 'FROM debian\nWORKDIR /app\nRUN apt-get install -y jq\nCOPY . /app\n',
    'environment/workspace/a': 'a',
  };

  it('builds its image from the environment alone, which contains the workspace', () => {
    const { description, build, workspace } = readHarborTask(treeOf(files));
    assert.match(description.image, /^temper-built:[0-9a-f]{40}$/);
    assert.deepEqual([description.imageFrom, description.workdir], ['dockerfile', '/app']);
    assert.deepEqual([...(build?.files.keys() ?? [])].sort(), ['Dockerfile', 'workspace/a']);
    assert.deepEqual([build?.timeoutSec, workspace.size], [90, 0]);
  });

  it('names the image by the bytes, paths and executable bits of its context, in any order', () => {
    const nameOf = (changed: object): string => readHarborTask(treeOf({ ...files, ...changed })).description.image;
    assert.equal(nameOf({ 'tests/test.sh': 'false\n', 'instruction.md': 'Do more.\n' }), nameOf({}));
    assert.notEqual(nameOf({ 'environment/workspace/a': 'b' }), nameOf({}));
    assert.notEqual(nameOf({ 'environment/workspace/b': '' }), nameOf({}));
    assert.notEqual(nameOf({ 'environment/Dockerfile': `${files['environment/Dockerfile']}#\n` }), nameOf({}));
    const tree = treeOf({ Dockerfile: 'FROM a\n', b: '1' });
    const backwards = new Map([...tree].reverse());
    assert.equal(builtImageName({ files: tree }), builtImageName({ files: backwards }));
    const program = new Map([...tree, ['b', { mode: 0o755, bytes: Buffer.from('1') }]]);
    assert.notEqual(builtImageName({ files: tree }), builtImageName({ files: program }));
  });

  it('uses the base image if the Dockerfile adds nothing to it', () => {
    const named = readHarborTask(treeOf({ ...files, 'environment/Dockerfile': 'FROM debian\nWORKDIR /srv\n' }));
    assert.deepEqual([named.description.image, named.description.imageFrom], ['debian', 'registry']);
    assert.deepEqual([...named.workspace.keys()], ['a']);
    const shipped = 'FROM temper-tasks:bookworm\n';
    assert.equal(
      readHarborTask(treeOf({ ...files, 'environment/Dockerfile': shipped })).description.imageFrom,
      undefined,
    );
  });
});

describe('the base images of a Dockerfile', () => {
  it('are those of its stages and copies, with the defaults of its variables', () => {
    assert.deepEqual(basesOf('FROM a:1 AS build\nRUN x\nFROM --platform=linux/amd64 b\nCOPY --from=build /x /\n'), [
      'a:1',
      'b',
    ]);
    assert.deepEqual(basesOf('FROM scratch\nCOPY --chown=1 --from=tool:2 /x /\nCOPY --from=0 /y /\n'), ['tool:2']);
    assert.deepEqual(basesOf(`ARG V=3.12\nARG I="python:$V"\nFROM $\{I}-slim\n`), ['python:3.12-slim']);
    assert.deepEqual(basesOf(`FROM $\{X:-node:24}\n`), ['node:24']);
    assert.deepEqual(read('# c\nFROM a \\\n  AS b\nRUN x\nFROM c\n').stageLines, [3, 5]);
  });

  it('come from a registry, unless the name is one of temper’s own', () => {
    const [first, second] = read('FROM temper-tasks:bookworm AS a\nFROM r.example:5000/x/y@sha256:0\n').bases;
    assert.deepEqual([first?.from, second?.from], ['host', 'registry']);
  });
});

const hostile: readonly (readonly [string, string])[] = [
  ['ADD of a URL', 'ADD http://169.254.169.254/latest /x'],
  ['ADD of a repository', 'ADD git@example.com:a/b /x'],
  ['ADD of a URL in a list', 'ADD ["https://example.com/x", "/x"]'],
  ['ADD of an invalid list, which is read as words', 'ADD ["a" http://example.com/x "b"]'],
  ['ADD of a URL in a variable', 'ADD $URL /x'],
  ['ADD of a URL with quotes inside', 'ADD ht""tp://example.com /x'],
  ['ADD of a URL over two lines', 'ADD ht\\\ntp://example.com /x'],
  ['ADD of a URL after a comment', 'RUN a \\\n# no end \\\n\nADD http://example.com /x'.replace('RUN a \\\n', '')],
  ['ADD of a URL after unusual white space', '#\u0085 \\\nADD http://example.com /x'],
  ['ADD of a URL before a line separator', 'ADD http://example.com/\u2028 /x'],
  ['two backslashes at the end', 'RUN true \\\\\nADD http://example.com /x'],
  ['another escape character', '# escape=`\nRUN a `\nADD http://example.com /x'],
  ['an ONBUILD trigger', 'ONBUILD ADD http://example.com /x'],
  ['a base image without a valid name', 'FROM $(id)'],
];
for (const [what, lines] of hostile) {
  it(`rejects ${what} before anything is built`, () => {
    for (const dockerfile of [`FROM a\n${lines}\n`, `${lines}\nFROM a\n`]) {
      assert.throws(() => read(dockerfile), { type: 'UnsupportedTask', message: /^environment\/Dockerfile: expected/ });
    }
  });
}

it('accepts ADD of files in the context, as words and as a list', () => {
  assert.equal(read('FROM a\nADD --chown=1:2 a.tar.gz src/*.js ./\nadd ["a", "/b"]\n').bases.length, 1);
});
