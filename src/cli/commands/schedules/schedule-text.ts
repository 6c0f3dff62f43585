/** Prints schedules and their runs as text, with times in the zone of the schedule. */

import type { Schedule, ScheduledRun } from '../../../host/contract/schedules-api.ts'
import { count } from '../../../kit/count.ts'
import { cut, flat, visible } from '../../../kit/text.ts'

/** `Tue 2026-12-01 09:00 Europe/Berlin`, with seconds only where there are some. */
export function timeText(iso: string, zone: string): string {
  const parts = new Intl.DateTimeFormat('en-GB', {
    ...{ timeZone: zone, weekday: 'short', year: 'numeric', month: '2-digit', day: '2-digit' },
    ...{ hour: '2-digit', minute: '2-digit', second: '2-digit' },
  }).formatToParts(new Date(iso))
  const part = (wanted: string) => parts.find(({ type }) => type === wanted)?.value ?? ''
  const seconds = part('second') === '00' ? '' : `:${part('second')}`
  return `${part('weekday')} ${part('year')}-${part('month')}-${part('day')} ${part('hour')}:${part('minute')}${seconds} ${zone}`
}

export function listLine({ name, state, when, zone, next: [next], last, why }: Schedule): string {
  const due = next === undefined ? state + (why === undefined ? '' : `: ${why}`) : `next ${timeText(next, zone)}`
  const ended = last === undefined ? 'never run' : `last ${last.state}`
  return `${name.padEnd(16)}  ${when.padEnd(18)}  ${due}  (${ended})\n`
}

export function scheduleText(schedule: Schedule): string {
  const { name, state, why, when, zone, next, message, workspace, agent, autonomy, conversation, channel, to, check } = schedule
  const { missed, overlap, pauseAfter, failures } = schedule
  const rows: readonly (readonly [string, string | undefined])[] = [
    ['name', name],
    ['state', state + (why === undefined ? '' : `: ${why}`)],
    ['when', `${when} (${zone})`],
    ['next', next.length === 0 ? undefined : next.map((each) => timeText(each, zone)).join('\n              ')],
    ['message', visible(message)],
    ['workspace', workspace],
    ['agent', agent],
    ['autonomy', autonomy],
    ['conversation', conversation === 'new' ? 'a new one each time' : 'the same each time'],
    ['answer to', channel === undefined ? undefined : `${channel} ${to}`],
    ['check', check],
    ['missed', missed],
    ['overlap', overlap === 'skip' ? 'skip a due time while the run before goes on' : 'wait for the run before'],
    ['pause after', pauseAfter === 0 ? 'never' : `${count(pauseAfter, 'failure')} in a row (now ${failures})`],
  ]
  return rows.flatMap(([label, text]) => (text === undefined ? [] : [`${label.padEnd(12)}  ${text}\n`])).join('')
}

export function runLine(run: ScheduledRun, zone: string): string {
  const { due, state, startedBy, attempt, passedOver, message, check, runId, tokens, costMicros, sent } = run
  const told = [
    startedBy === 'hand' ? 'started by hand' : '',
    attempt > 1 ? `attempt ${attempt}` : '',
    passedOver > 0 ? `stands for ${count(passedOver, 'earlier due time')}` : '',
    message === undefined ? '' : cut(flat(message), 160),
    check === undefined ? '' : `check ${cut(flat(check), 120)}`,
    tokens === undefined ? '' : `${tokens} tokens${costMicros === undefined ? '' : `, $${(costMicros / 1e6).toFixed(4)}`}`,
    sent === undefined ? '' : sent.startsWith('not sent') ? cut(flat(sent), 120) : 'sent',
    runId ?? '',
  ]
  return `${timeText(due, zone)}  ${state.padEnd(11)}  ${told.filter((each) => each !== '').join('; ')}\n`
}
