import assert from 'node:assert/strict';
import { it } from 'node:test';
import { readBuildContext } from '../../../infra/harbor/build-context.ts';
import { withoutIgnored } from '../../../infra/harbor/docker-ignore.ts';
import { readHarborTask } from '../../../infra/harbor/harbor-task.ts';
import { treeOf } from '../../helpers/sandbox/workspaces.ts';

const paths = [
  'Dockerfile',
  'a.log',
  'b.txt',
  'src/a.log',
  'src/main.py',
  'src/deep/x.py',
  'node_modules/m/i.js',
  'odd[1]',
];
const kept = (text: string): string =>
  [...withoutIgnored(treeOf({ ...Object.fromEntries(paths.map((path) => [path, ''])), '.dockerignore': text })).keys()]
    .filter((path) => path !== '.dockerignore')
    .join(' ');
const all = paths.join(' ');
const without = (...left: readonly string[]): string => paths.filter((path) => !left.includes(path)).join(' ');

/** Each case gives the result of `docker build` in Docker 28. */
const cases: readonly (readonly [string, string, string])[] = [
  ['no pattern', '', all],
  ['comments and blank lines', '# src\n\n  \n', all],
  ['files at the top level', '*.log', without('a.log')],
  ['files at any depth', '**/*.log', without('a.log', 'src/a.log')],
  ['a directory with slashes around it', '/node_modules/', without('node_modules/m/i.js')],
  ['everything below a directory', 'src/**', without('src/a.log', 'src/main.py', 'src/deep/x.py')],
  ['one level below', 'src/*.py', without('src/main.py')],
  ['any levels in between', 'src/**/x.py', without('src/deep/x.py')],
  ['an exception', 'src\n!src/main.py', without('src/a.log', 'src/deep/x.py')],
  ['an exception before its rule', '!b.txt\n*.txt', without('b.txt')],
  ['everything but one directory', '*\n!src/deep', 'Dockerfile src/deep/x.py'],
  [
    'one character, a range and an escaped bracket',
    '?.txt\n[a-c].log\nodd\\[1\\]',
    without('a.log', 'b.txt', 'odd[1]'),
  ],
  ['a negated range', '[^a].*', without('b.txt')],
  ['parent directories', './x/../b.txt', without('b.txt')],
  ['the required Dockerfile', 'Dockerfile', all],
];
for (const [what, text, expected] of cases) {
  it(`applies a .dockerignore with ${what}`, () => {
    assert.equal(kept(text), expected);
    assert.equal(kept(text.replaceAll('\n', '\r\n')), expected);
  });
}

it('excludes an ignored file from the build and from the image’s name', () => {
  const read = (content: string) =>
    readBuildContext(treeOf({ Dockerfile: 'FROM a\n', '.dockerignore': 'secret\n', secret: content }), 60).files;
  assert.deepEqual([...read('x').keys()].sort(), ['.dockerignore', 'Dockerfile']);
  assert.deepEqual(read('x'), read('y'));
});

it('applies the rules of the Dockerfile itself, if it has some, in place of those of the context', () => {
  const sent = (environment: Record<string, string>): readonly string[] => {
    const files = Object.entries(environment).map(([path, text]) => [`environment/${path}`, text]);
    const { build } = readHarborTask(
      treeOf({
        ...Object.fromEntries(files),
        'task.toml': 'version = "1.0"\n',
        'instruction.md': 'Do it.\n',
        'tests/test.sh': 'true\n',
      }),
    );
    assert.match(String(build?.files.get('.dockerignore')?.bytes), /^a\n\n\.dockerignore\n/);
    return [...(build?.files.keys() ?? [])].filter((path) => path === 'a' || path === 'b');
  };
  const files = { a: '', b: '', '.dockerignore': 'b\n' };
  const Dockerfile = 'FROM a\nCOPY . /app\n';
  assert.deepEqual(sent({ ...files, Dockerfile, 'Dockerfile.dockerignore': 'a\n' }), ['b']);
  const compose = 'services:\n  main:\n    build: {dockerfile: docker/main}\n    volumes: ["./b:/b"]\n';
  const named = { 'docker/main': Dockerfile, 'docker/main.dockerignore': 'a\n', 'docker-compose.yaml': compose };
  assert.deepEqual(sent({ ...files, ...named }), ['b']);
});

it('matches a pattern that is designed to be slow in a short time', () => {
  const name = 'a'.repeat(250);
  const start = process.cpuUsage();
  withoutIgnored(treeOf({ [name]: '', '.dockerignore': `${'a*'.repeat(120)}b\n${'**/'.repeat(500)}b\n` }));
  assert.ok(process.cpuUsage(start).user < 5_000_000);
});
