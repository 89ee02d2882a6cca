import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { readBuildContext } from '../../../infra/harbor/build-context.ts';
import { readDockerfile, workdirIn } from '../../../infra/harbor/dockerfile.ts';
import { expandWord, unknown } from '../../../infra/harbor/dockerfile-words.ts';
import { readHarborTask } from '../../../infra/harbor/harbor-task.ts';
import { treeOf } from '../../helpers/sandbox/workspaces.ts';

const workdirOf = (lines: string): string | null => workdirIn(readDockerfile(lines));
const refusedWorkdir = (line: RegExp) => ({ type: 'UnsupportedTask', message: line });

describe('the variables of a Dockerfile', () => {
  const values = new Map(Object.entries({ A: 'a', EMPTY: '', SPACED: 'b c' }));
  const expand = (word: string): string =>
    expandWord(word, { get: (name) => values.get(name), unset: (name) => `(${name})` });

  it('take the place of their names, as BuildKit reads quotes, escapes, defaults and alternatives', () => {
    const cases: readonly (readonly [word: string, value: string])[] = [
      ['$A/x', 'a/x'],
      [`$\{A}x`, 'ax'],
      ['$Ax', '(Ax)'],
      [`"$A $\{SPACED}"`, 'a b c'],
      [`'$A'"$A"$A`, '$Aaa'],
      ['\\$A\\ x', '$A x'],
      ['"\\$A \\"q\\" \\n"', '$A "q" \\n'],
      [`$\{A:-y}$\{EMPTY:-y}$\{EMPTY-y}$\{NONE:-y}$\{NONE-y}`, 'ayyy'],
      [`$\{A:+y}$\{EMPTY:+y}$\{EMPTY+z}$\{NONE:+y}$\{NONE+y}`, 'yz'],
      [`$\{NONE:-$\{OTHER:-/srv/$A}}`, '/srv/a'],
      [`$\{NONE:-"}"}x`, '}x'],
      [`$\{A:?needed}`, 'a'],
      ['cost $ 5', 'cost $ 5'],
    ];
    for (const [word, value] of cases) assert.equal(expand(word), value, word);
  });

  it('are unknown where the word is not complete or has another modifier', () => {
    for (const word of [
      `$\{A`,
      '"a',
      "'a",
      `$\{A#x}`,
      `$\{A/a/b}`,
      `$\{}`,
      `$\{A:-b`,
      `${`$\{A:-`.repeat(60)}${'}'.repeat(60)}`,
    ])
      assert.equal(expand(word), unknown(word), word);
  });
});

describe('the workdir of a Dockerfile', () => {
  it('has the values of ENV and ARG at its line', () => {
    assert.equal(workdirOf('FROM a\nENV APP_HOME=/srv/app\nWORKDIR $APP_HOME\n'), '/srv/app');
    assert.equal(workdirOf('FROM a\nENV APP_HOME /srv/my app\nWORKDIR "$APP_HOME"/x/\n'), '/srv/my app/x');
    assert.equal(
      workdirOf('ARG ROOT=/srv\nFROM a\nARG ROOT\nARG APP=$ROOT/app\nWORKDIR $APP\nWORKDIR src\n'),
      '/srv/app/src',
    );
    assert.equal(workdirOf('FROM a\nENV A=/one\nENV A=/two B=$A\nWORKDIR $B\n'), '/one');
    assert.equal(workdirOf('FROM a\nARG A=/arg\nENV A=/env\nWORKDIR $A\nENV A=/later\n'), '/env');
    assert.equal(workdirOf(`FROM a\nWORKDIR $\{HOME_OF_APP:-/srv/app}\n`), '/srv/app');
    assert.equal(workdirOf(`FROM a\nARG DEBUG\nWORKDIR /app$\{DEBUG:+/debug}\n`), '/app');
    assert.equal(workdirOf('ARG OUTSIDE=/x\nFROM scratch\nWORKDIR /app$OUTSIDE\n'), '/app');
  });

  it('has the variables of the stage that its own one starts from', () => {
    const stages = 'FROM a AS Base\nENV HOME_OF=/srv\nARG PART=one\nFROM b\nENV HOME_OF=/other\nFROM base\n';
    assert.equal(workdirOf(`${stages}WORKDIR $HOME_OF/$PART\n`), '/srv/one');
    assert.equal(workdirOf('ARG KIND=full\nFROM a AS full\nWORKDIR /srv\nFROM $KIND\nWORKDIR app\n'), '/srv/app');
  });

  it('is refused by its line where only the image can tell it, unless the task names it', () => {
    for (const line of ['WORKDIR $GOPATH/src/app', `WORKDIR $\{GOPATH}`, `WORKDIR $\{A#/x}`, `WORKDIR "/a`])
      assert.throws(
        () => workdirOf(`FROM golang\n${line}\nWORKDIR below\n`),
        refusedWorkdir(
          /expected a WORKDIR whose variables the Dockerfile itself sets, got "WORKDIR .*environment\.workdir$/,
        ),
      );
    assert.equal(workdirOf('FROM golang\nWORKDIR $GOPATH\nWORKDIR /app\n'), '/app');
    const task = (toml: string) =>
      readHarborTask(
        treeOf({
          'task.toml': `version = "1.0"\n${toml}`,
          'instruction.md': 'Do it.\n',
          'tests/test.sh': 'true\n',
          'environment/Dockerfile': 'FROM golang\nWORKDIR $GOPATH/src\n',
        }),
      ).description.workdir;
    assert.throws(() => task(''), refusedWorkdir(/got "WORKDIR \$GOPATH\/src"/));
    assert.equal(task('[environment]\nworkdir = "/go/src"\n'), '/go/src');
  });

  it('takes the workspace where a variable leads', () => {
    const { workspaceTarget } = readDockerfile('FROM a\nENV APP=/app\nWORKDIR $APP\nCOPY workspace $APP/src\n');
    assert.equal(workspaceTarget, '/app/src');
  });
});

describe('the image that a Dockerfile starts from', () => {
  const basesOf = (source: string) =>
    readBuildContext(treeOf({ Dockerfile: source }), 600).bases.map(({ image }) => image);

  it('has the values of arguments before all stages', () => {
    assert.deepEqual(basesOf(`ARG V="3.12"\nFROM python:$\{V}$\{SLIM:+-slim}\n`), ['python:3.12']);
    assert.equal(readDockerfile(`FROM $\{BASE:-debian}\n`).base, 'debian');
    assert.deepEqual(readDockerfile(`FROM $\{BASE:-debian}\n`).buildOnly, []);
  });

  it('is refused where it is no name', () => {
    for (const source of ['FROM $NOTHING\n', 'FROM a\nCOPY --from=$STAGE /x /y\n'])
      assert.throws(() => basesOf(source), { type: 'UnsupportedTask', message: /by its name, got/ });
  });
});
