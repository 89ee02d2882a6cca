import { Command } from 'commander';
import { stackCommand } from '../stack/command.ts';
import { withSweepOptions } from './eval/sweep-options.ts';
import { createSchedule } from './schedule/create.ts';
import { deleteSchedule, listSchedules, pauseSchedule, resumeSchedule, triggerSchedule } from './schedule/manage.ts';
import { withScheduleOptions } from './schedule/schedule-options.ts';

const jsonHelp = 'print one JSON object to stdout';

export function scheduleCommand(): Command {
  const create = stackCommand(
    'create',
    'Creates a schedule that starts evaluation sweeps at set times or after steps of a run.',
    'temper schedule create nightly --cron "0 3 * * *" --tasks generated:test/1 --count 64',
  )
    .argument('<id>', 'id of the schedule, also in the Temporal UI')
    .option('--json', jsonHelp);
  const list = stackCommand('list', 'Lists the schedules of sweeps.', 'temper schedule list')
    .alias('ls')
    .option('--json', 'print one JSON object per schedule to stdout')
    .action(listSchedules);
  const trigger = named('trigger', 'Starts a sweep of a schedule now.', 'temper schedule trigger nightly').action(
    triggerSchedule,
  );
  const pause = named(
    'pause',
    'Pauses a schedule: it starts no sweep until it is resumed.',
    'temper schedule pause nightly',
  )
    .option('--reason <text>', 'shown by temper schedule list and in the Temporal UI')
    .action(pauseSchedule);
  const resume = named('resume', 'Resumes a paused schedule.', 'temper schedule resume nightly').action(resumeSchedule);
  const remove = named(
    'delete',
    'Deletes a schedule. Sweeps that it has started continue.',
    'temper schedule delete nightly',
  ).action(deleteSchedule);
  const schedule = new Command('schedule').description('Runs evaluation sweeps on Temporal Schedules.');
  for (const one of [
    withSweepOptions(withScheduleOptions(create)).action(createSchedule),
    list,
    trigger,
    pause,
    resume,
    remove,
  ]) {
    schedule.addCommand(one);
  }
  return schedule;
}

const named = (name: string, description: string, example: string): Command =>
  stackCommand(name, description, example).argument('<id>', 'id of a schedule').option('--json', jsonHelp);
