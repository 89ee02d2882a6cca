import type { Argument, Command, Option } from 'commander';
import { exampleOf } from '../../workers/cli/stack/command.ts';
import { code, entry, join, paragraph, plain, sentence } from './markdown.ts';

/** Returns the page of every command with its arguments and options. */
export function cliPage(program: Command): string {
  return join(
    '# CLI',
    paragraph(
      'Run `temper` as `npx temper`, in a checkout or where the package is installed. `temper COMMAND --help` prints the same. Commands that work on a stack also have `--home <dir>`, which replaces `TEMPER_HOME`. Exit status: 0 success, 1 failure, 2 invalid command line, 130 interrupted.',
    ),
    ...program.commands.map((command) => section(command, `temper ${command.name()}`, 2)),
  );
}

function section(command: Command, name: string, level: number): string {
  const example = exampleOf(command);
  const options = command.options.filter((option) => option.long !== '--home');
  return join(
    `${'#'.repeat(level)} ${name}`,
    paragraph(plain(sentence(command.description()))),
    `\`\`\`sh\n${[`${name} ${command.usage()}`.trim(), ...(example === undefined ? [] : [example])].join('\n')}\n\`\`\``,
    [
      ...command.registeredArguments.map((argument) =>
        entry(argument.name(), choicesOf(argument), argument.description),
      ),
      ...options.map(optionEntry),
    ].join('\n'),
    ...command.commands.map((below) => section(below, `${name} ${below.name()}`, level + 1).trimEnd()),
  ).trimEnd();
}

const choicesOf = ({ argChoices }: Pick<Argument | Option, 'argChoices'>): readonly string[] =>
  argChoices === undefined ? [] : [argChoices.map(code).join(', ')];

function optionEntry(option: Option): string {
  const fallback =
    option.defaultValueDescription ??
    (option.defaultValue === undefined ? undefined : code(String(option.defaultValue)));
  const facts = [
    ...(option.mandatory ? ['required'] : []),
    ...choicesOf(option),
    ...(fallback === undefined || option.negate ? [] : [`default: ${fallback}`]),
  ];
  return entry(option.flags, facts, option.description);
}
