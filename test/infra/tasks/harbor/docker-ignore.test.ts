import assert from 'node:assert/strict';
import { it } from 'node:test';
import { readBuildContext } from '../../../../infra/tasks/harbor/build-context.ts';
import { withoutIgnored } from '../../../../infra/tasks/harbor/docker-ignore.ts';
import { treeOf } from '../../../helpers/sandbox/workspaces.ts';

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

/** Each as `docker build` of Docker 28 reads it. */
const cases: readonly (readonly [string, string, string])[] = [
  ['nothing', '', all],
  ['comments and blanks', '# src\n\n  \n', all],
  ['a file at the top alone', '*.log', without('a.log')],
  ['files at any depth', '**/*.log', without('a.log', 'src/a.log')],
  ['a directory, with or without its slashes', '/node_modules/', without('node_modules/m/i.js')],
  ['what lies below a directory', 'src/**', without('src/a.log', 'src/main.py', 'src/deep/x.py')],
  ['one level below', 'src/*.py', without('src/main.py')],
  ['levels between', 'src/**/x.py', without('src/deep/x.py')],
  ['one of its own that comes back', 'src\n!src/main.py', without('src/a.log', 'src/deep/x.py')],
  ['the last word', '!b.txt\n*.txt', without('b.txt')],
  ['all but some', '*\n!src/deep', 'Dockerfile src/deep/x.py'],
  ['one sign, a range and what is no range', '?.txt\n[a-c].log\nodd\\[1\\]', without('a.log', 'b.txt', 'odd[1]')],
  ['all but a range', '[^a].*', without('b.txt')],
  ['paths that climb', './x/../b.txt', without('b.txt')],
  ['the Dockerfile, which is needed', 'Dockerfile', all],
];
for (const [what, text, expected] of cases) {
  it(`a .dockerignore of ${what} leaves ${expected === all ? 'all' : 'the others'} in the context`, () => {
    assert.equal(kept(text), expected);
    assert.equal(kept(text.replaceAll('\n', '\r\n')), expected);
  });
}

it('a file that is left out is no part of what is built, nor of its name', () => {
  const read = (content: string) =>
    readBuildContext(treeOf({ Dockerfile: 'FROM a\n', '.dockerignore': 'secret\n', secret: content }), 60).files;
  assert.deepEqual([...read('x').keys()].sort(), ['.dockerignore', 'Dockerfile']);
  assert.deepEqual(read('x'), read('y'));
});

it('a pattern that is made to take long does not', () => {
  const name = 'a'.repeat(250);
  const start = process.cpuUsage();
  withoutIgnored(treeOf({ [name]: '', '.dockerignore': `${'a*'.repeat(120)}b\n${'**/'.repeat(500)}b\n` }));
  assert.ok(process.cpuUsage(start).user < 5_000_000);
});
