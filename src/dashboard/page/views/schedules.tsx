/** Answers "what happens by itself, and when": each schedule with its next times, what can be done about it, and its history. */

import { useState } from 'preact/hooks'
import type { Schedule, ScheduledRun } from '../../../channels/http/answer-shapes.ts'
import { call } from '../net/api.ts'
import { About, counted, Field, InputField, moment, SelectField } from '../parts/fields.tsx'
import { LoadedList, useAnswer } from '../parts/loaded.tsx'
import { MissedField, ScheduleForm } from '../parts/schedule-form.tsx'
import { Button, Facts, money, Tag, Time } from '../parts/small.tsx'
import { doing, may } from '../state.ts'

type ScheduleProps = { readonly schedule: Schedule; readonly changed: () => void }

const stateKinds = { active: 'good', paused: 'warn', done: '' } as const

export function ScheduleCard({ schedule, changed }: ScheduleProps) {
  const { id, name, state, why, when, zone, next, message, channel, to, check, last } = schedule
  const [open, setOpen] = useState(false)
  return (
    <article class="card" aria-label={`Schedule ${name}`}>
      <div class="row spread">
        <div class="row">
          <h2 class="name">{name}</h2>
          <Tag kind={stateKinds[state]}>{state}</Tag>
        </div>
        <span class="quiet small">
          {when}
          {when.startsWith('cron') ? `, ${zone}` : ''}
        </span>
      </div>
      <p class="breaks">{message}</p>
      <Facts
        of={[
          ['Next', next.length === 0 ? state === 'paused' ? 'never while it is paused' : 'not due any more' : <Times of={next} />],
          ['Last run', last === null ? 'none yet' : <Ended run={last} />],
          why !== null && ['Reason', why],
          check !== null && ['Good when', <code>{check}</code>],
          channel !== null && ['Answer to', to === null ? channel : `${channel}, ${to}`],
        ]}
      />
      {may('admin') && <Actions schedule={schedule} changed={changed} />}
      <details onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>
          History<span class="hidden"> of {name}</span>
        </summary>
        {open && <History key={`${id} ${last?.started} ${last?.state}`} id={id} />}
      </details>
    </article>
  )
}

function Times({ of }: { readonly of: readonly string[] }) {
  return (
    <ul class="list">
      {of.map((at) => (
        <li key={at}>
          <Time at={moment(at)} />
        </li>
      ))}
    </ul>
  )
}

const runKinds = { running: '', good: 'good', bad: 'bad', interrupted: 'bad', missed: 'warn', skipped: 'warn' } as const

function Ended({ run }: { readonly run: ScheduledRun }) {
  const { state, started, message, check, sent, passed_over } = run
  return (
    <>
      <Tag kind={runKinds[state]}>{state}</Tag> <Time at={moment(started)} />
      {message !== null && <span class="breaks"> {message}</span>}
      {check !== null && check !== 'passed' && <span class="breaks"> Check: {check}.</span>}
      {sent !== null && Number.isNaN(moment(sent)) && <span class="breaks"> Not sent: {sent}.</span>}
      {passed_over > 0 && <span> It stands for {counted(passed_over, 'earlier time')} that was missed.</span>}
    </>
  )
}

function Actions({ schedule: { id, name, state }, changed }: ScheduleProps) {
  const act = (path: 'PATCH' | 'POST' | 'DELETE', done: string, body?: object) => async () => {
    const at = `/schedules/${encodeURIComponent(id)}${path === 'POST' ? '/run' : ''}`
    await doing(done, () => call(path, at, body))
    changed()
  }
  const remove = act('DELETE', `Removed: ${name}`)
  return (
    <div class="row actions">
      <Button word="Run now" on={() => act('POST', `Started: ${name}`, {})()} more={`: ${name}`} />
      {state === 'active' && <Button word="Pause" on={() => act('PATCH', `Paused: ${name}`, { state: 'paused' })()} more={` ${name}`} />}
      {state === 'paused' && <Button word="Resume" on={() => act('PATCH', `Resumed: ${name}`, { state: 'active' })()} more={` ${name}`} />}
      <button
        type="button"
        onClick={() => {
          if (confirm(`Remove ${name} and its history?`)) void remove()
        }}
      >
        Remove<span class="hidden"> {name}</span>
      </button>
    </div>
  )
}

function History({ id }: { readonly id: string }) {
  const shown = useAnswer<{ runs: readonly ScheduledRun[] }>(`/schedules/${encodeURIComponent(id)}?limit=50`)
  return (
    <LoadedList from={shown} of={({ runs }) => runs} empty="It has not run yet." list="ol">
      {(run) => (
        <li key={`${run.due} ${run.started}`} class="line">
          <div class="grow">
            <Ended run={run} />
            <span class="quiet small">
              {run.started_by === 'hand' ? ' Started by hand.' : ''}
              {run.tokens === null ? '' : ` ${counted(run.tokens, 'token')}, ${money(run.cost_micros ?? undefined)}.`}
            </span>
          </div>
          {run.run_id !== null && (
            <a href={`#/runs/${run.run_id}`}>
              Transcript<span class="hidden"> of {run.started}</span>
            </a>
          )}
        </li>
      )}
    </LoadedList>
  )
}

/** Answers "what happens by itself, and when": each schedule with its next times and how its last run ended. */
export function Schedules(_: { readonly rest: string }) {
  const list = useAnswer<{ schedules: readonly Schedule[] }>('/schedules', ({ event }) => event.type.startsWith('schedule_'))
  return (
    <>
      <h1>Schedules</h1>
      <About>
        See what the agent does by itself, when each run is due, and how it ended. Nobody is asked during such a run, so a call that needs
        an approval is refused.
      </About>
      <LoadedList from={list} of={({ schedules }) => schedules} empty="Nothing is scheduled.">
        {(schedule) => <ScheduleCard key={schedule.id} schedule={schedule} changed={list.again} />}
      </LoadedList>
      {may('admin') && <NewSchedule added={list.again} />}
    </>
  )
}

/** Adds a schedule: what is to be done, and when. */
function NewSchedule({ added }: { readonly added: () => void }) {
  const message = (
    <Field id="plan-message" label="What the agent should do">
      <textarea id="plan-message" name="message" rows={2} required />
    </Field>
  )
  return (
    <ScheduleForm
      kinds={['day', 'weekday', 'every', 'at', 'cron']}
      nameHelp="Letters, digits, - and _"
      head={message}
      send={(fields) => call('POST', '/schedules', fields)}
      added={added}
    >
      <details>
        <summary>Check, answer, missed times</summary>
        <Choices />
      </details>
    </ScheduleForm>
  )
}

const conversations = [
  ['new', 'A new one each time'],
  ['same', 'Always the same'],
] as const

function Choices() {
  return (
    <div class="fields">
      <InputField
        id="plan-check"
        label="The run counts as good only when this succeeds"
        help="A command; it runs in the sandbox and changes nothing"
        name="check"
        class="mono"
        placeholder="test -s report.md"
      />
      <InputField id="plan-channel" label="Send the answer to the channel" help="Such as discord or fifo" name="channel" />
      <InputField id="plan-to" label="Address on that channel" name="to" />
      <MissedField noun="run" />
      <SelectField id="plan-conversation" label="Conversation" name="conversation" of={conversations} />
    </div>
  )
}
