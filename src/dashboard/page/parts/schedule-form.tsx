/** The form that adds a schedule: its name, when it is due in which zone, and what the page puts around these. */

import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { doing } from '../state.ts'
import { Field, filled, InputField, SelectField, submitBy } from './fields.tsx'
import { Part, Proposals, Submit } from './small.tsx'

const timings = {
  day: { name: 'Every day at', example: '09:00', help: 'Hour and minute in the time zone', days: '*' },
  weekday: { name: 'Monday to Friday at', example: '09:00', help: 'Hour and minute in the time zone', days: 'mon-fri' },
  cron: { name: 'Advanced: cron', example: '0 9 * * mon-fri', help: 'Minute, hour, day, month, weekday; or @daily' },
  every: { name: 'At an interval', example: '2h', help: 'Such as 30m, 2h, 1h30m or 1d, from now on' },
  at: { name: 'Once', example: 'in 20m', help: 'Such as "in 20m", "18:30" or "2026-12-24 09:00"' },
} as const
type Kind = keyof typeof timings

const ownZone = Intl.DateTimeFormat().resolvedOptions().timeZone
const zones = Intl.supportedValuesOf('timeZone')

type ScheduleFormProps = {
  /** The ways in which it may be due; the first is chosen. */
  readonly kinds: readonly [Kind, ...Kind[]]
  readonly nameHelp: string
  /** Stands above the name. */
  readonly head?: ComponentChildren
  readonly children: ComponentChildren
  /** Gets the filled fields by name; when it is due has the name of its kind. */
  readonly send: (fields: { readonly [name: string]: string }) => Promise<unknown>
  readonly added: () => void
}

export function ScheduleForm({ kinds, nameHelp, head, children, send, added }: ScheduleFormProps) {
  const [kind, setKind] = useState<Kind>(kinds[0])
  const { example, help, ...timing } = timings[kind]
  const days = 'days' in timing ? timing.days : undefined
  async function add(form: HTMLFormElement): Promise<void> {
    const { when = '', ...fields } = filled(form)
    const due = days === undefined ? { [kind]: when } : { cron: `${Number(when.slice(3, 5))} ${Number(when.slice(0, 2))} * * ${days}` }
    if (!(await doing(`Added: ${fields.name}`, () => send({ ...fields, ...due })))) return
    form.reset()
    added()
  }
  return (
    <Part id="add-title" title="Add a schedule">
      <form class="card" onSubmit={submitBy(add)}>
        {head}
        <div class="fields">
          <InputField id="plan-name" label="Name" help={nameHelp} name="name" required maxLength={64} />
          <SelectField
            id="plan-kind"
            label="How often"
            value={kind}
            of={kinds.map((each) => [each, timings[each].name])}
            set={(value) => setKind(value as Kind)}
          />
          <Field id="plan-when" label="When" help={help}>
            {days === undefined ? (
              <input key="text" id="plan-when" name="when" class="mono" required placeholder={example} aria-describedby="plan-when-help" />
            ) : (
              <input key="time" id="plan-when" name="when" type="time" required defaultValue={example} aria-describedby="plan-when-help" />
            )}
          </Field>
          <InputField id="plan-zone" label="Time zone" name="zone" list="plan-zones" defaultValue={ownZone} />
        </div>
        <Proposals id="plan-zones" of={zones} />
        {children}
        <Submit>Add</Submit>
      </form>
    </Part>
  )
}

/** `noun`: what a time makes, a run or a task. */
export function MissedField({ noun }: { readonly noun: string }) {
  const choices = [
    ['run-once', `One ${noun} for all of them`],
    ['skip', `No ${noun}`],
    ['run-all', `A ${noun} for each`],
  ] as const
  return <SelectField id="plan-missed" label="Missed times" name="missed" of={choices} />
}
