import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { builtImageName, readBuildContext } from '../../../../infra/tasks/harbor/build-context.ts';
import { readHarborTask } from '../../../../infra/tasks/harbor/harbor.ts';
import { treeOf } from '../../../helpers/sandbox/workspaces.ts';

const read = (dockerfile: string) => readBuildContext(treeOf({ Dockerfile: dockerfile }), 600);
const basesOf = (dockerfile: string): readonly string[] => read(dockerfile).bases.map(({ image }) => image);

describe('a Dockerfile that has to be built', () => {
  const files = {
    'task.toml': 'version = "1.0"\n[environment]\nbuild_timeout_sec = 90\n',
    'instruction.md': 'Do it.\n',
    'tests/test.sh': 'true\n',
    'solution/solve.sh': 'true\n',
    'environment/Dockerfile': 'FROM debian\nWORKDIR /app\nRUN apt-get install -y jq\nCOPY . /app\n',
    'environment/workspace/a': 'a',
  };

  it('makes an image of the environment alone, which brings the workspace', () => {
    const { description, build, workspace } = readHarborTask(treeOf(files));
    assert.match(description.image, /^temper-built:[0-9a-f]{40}$/);
    assert.deepEqual([description.imageFrom, description.workdir], ['dockerfile', '/app']);
    assert.deepEqual([...(build?.files.keys() ?? [])].sort(), ['Dockerfile', 'workspace/a']);
    assert.deepEqual([build?.timeoutSec, workspace.size], [90, 0]);
  });

  it('is named by what is in its context: by bytes, paths and what may run, in any order', () => {
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

  it('stands for an image that a registry has, if it asks for nothing beyond', () => {
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

describe('the images that a Dockerfile needs', () => {
  it('are those of its stages and those it copies from, with the defaults of its variables', () => {
    assert.deepEqual(basesOf('FROM a:1 AS build\nRUN x\nFROM --platform=linux/amd64 b\nCOPY --from=build /x /\n'), [
      'a:1',
      'b',
    ]);
    assert.deepEqual(basesOf('FROM scratch\nCOPY --chown=1 --from=tool:2 /x /\nCOPY --from=0 /y /\n'), ['tool:2']);
    assert.deepEqual(basesOf(`ARG V=3.12\nARG I="python:$V"\nFROM $\{I}-slim\n`), ['python:3.12-slim']);
    assert.deepEqual(basesOf(`FROM $\{X:-node:24}\n`), ['node:24']);
    assert.deepEqual(read('# c\nFROM a \\\n  AS b\nRUN x\nFROM c\n').stageLines, [3, 5]);
  });

  it('come from a registry, unless their name is ours', () => {
    const [first, second] = read('FROM temper-tasks:bookworm AS a\nFROM r.example:5000/x/y@sha256:0\n').bases;
    assert.deepEqual([first?.from, second?.from], ['host', 'registry']);
  });
});

const hostile: readonly (readonly [string, string])[] = [
  ['an address to ADD', 'ADD http://169.254.169.254/latest /x'],
  ['a repository to ADD', 'ADD git@example.com:a/b /x'],
  ['an address in a list', 'ADD ["https://example.com/x", "/x"]'],
  ['a list that is none, and so is read as words', 'ADD ["a" http://example.com/x "b"]'],
  ['an address in a variable', 'ADD $URL /x'],
  ['an address between quotes', 'ADD ht""tp://example.com /x'],
  ['an address over two lines', 'ADD ht\\\ntp://example.com /x'],
  ['an address behind a comment', 'RUN a \\\n# no end \\\n\nADD http://example.com /x'.replace('RUN a \\\n', '')],
  ['an address below odd white space', '#\u0085 \\\nADD http://example.com /x'],
  ['an address behind a line separator', 'ADD http://example.com/\u2028 /x'],
  ['two backslashes at the end', 'RUN true \\\\\nADD http://example.com /x'],
  ['another escape character', '# escape=`\nRUN a `\nADD http://example.com /x'],
  ['a trigger', 'ONBUILD ADD http://example.com /x'],
  ['a base image that nobody can name', 'FROM $(id)'],
];
for (const [what, lines] of hostile) {
  it(`${what} is refused, and nothing is built`, () => {
    for (const dockerfile of [`FROM a\n${lines}\n`, `${lines}\nFROM a\n`]) {
      assert.throws(() => read(dockerfile), { type: 'UnsupportedTask', message: /^environment\/Dockerfile: expected/ });
    }
  });
}

it('files of the context may be added, by words and by lists', () => {
  assert.equal(read('FROM a\nADD --chown=1:2 a.tar.gz src/*.js ./\nadd ["a", "/b"]\n').bases.length, 1);
});
