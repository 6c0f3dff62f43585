/** Answers "what may it cost, and what does it": today by role, the last days as a chart, and every limit with a way to change it. */

import { useEffect, useRef, useState } from 'preact/hooks'
import type { Budget } from '../../../../control/contract/fleet-shapes.ts'
import { DayChart } from '../../parts/chart.tsx'
import { About, counted, InputField, moment, submitBy, whole } from '../../parts/fields.tsx'
import { Button, Empty, Part, Proposals, Select, Table, Tile } from '../../parts/small.tsx'
import { doing } from '../../state.ts'
import { changeLimit } from '../actions.tsx'
import { budget, roles } from '../control-state.ts'
import { plane } from '../net/plane-live.ts'
import { idIn } from '../parts/address.ts'
import { At, tokensOf } from '../parts/bits.tsx'

/** `rest` is the role that the person came for. */
export function BudgetPage({ rest }: { readonly rest: string }) {
  const now = budget.value
  return (
    <>
      <h1>Budget</h1>
      <About>
        See what the agents spend today and what they may spend. Tokens are reserved before a model is called: a call that would exceed a
        limit is not made, and its task waits.
      </About>
      {now ? <Whole of={now} role={idIn(rest)} /> : <Empty>Loading</Empty>}
    </>
  )
}

function Whole({ of, role }: { readonly of: Budget; readonly role: string }) {
  const { spent_today, reserved, remaining, forecast_today, daily_tokens, blocked_tasks, next_day_at, day, timezone } = of
  const exceeds = daily_tokens !== null && forecast_today > daily_tokens
  return (
    <>
      <div class="tiles">
        <Tile name={`Spent on ${day}`} value={whole(spent_today)} />
        <Tile name="Reserved now" value={whole(reserved)} />
        <Tile name="Left" value={tokensOf(remaining)} />
        <Tile name="Forecast for today" value={whole(forecast_today)} />
      </div>
      {blocked_tasks > 0 && (
        <p class="card ask">
          <a href="#/tasks?status=budget_blocked">{counted(blocked_tasks, 'task')} without budget</a>
        </p>
      )}
      {exceeds && spent_today < daily_tokens && (
        <p class="card ask">
          At this rate, today would cost {whole(forecast_today)} tokens; at {whole(daily_tokens)} all agents stop.
        </p>
      )}
      <p class="quiet small">
        The day begins at midnight in {timezone}; the next one begins <At time={next_day_at} />.
      </p>
      <OverTime of={of} />
      <Part id="limits-title" title="Daily limits">
        <ul class="list">
          <Limit
            name="All roles"
            scope={{ limit: daily_tokens, spent: spent_today, reserved, remaining }}
            set={(tokens) => changeLimit(of, undefined, tokens)}
          />
          {Object.entries(of.roles).map(([name, scope]) => (
            <Limit key={name} name={name} scope={scope} asked={name === role} set={(tokens) => changeLimit(of, name, tokens)} />
          ))}
        </ul>
        <NewRoleLimit known={Object.keys(of.allocation)} set={(name, tokens) => changeLimit(of, name, tokens)} />
      </Part>
      <AgentLimits of={of.agents} />
      <Zone now={timezone} set={(zone) => doing(`Days begin at midnight in ${zone}`, () => plane('PUT', 'budget', { timezone: zone }))} />
    </>
  )
}

function OverTime({ of: { days, roles, daily_tokens, forecast_today, day } }: { readonly of: Budget }) {
  const [role, setRole] = useState('')
  const known = [...new Set([...Object.keys(roles), ...days.flatMap(({ by_role }) => Object.keys(by_role))])].sort()
  const amountOf = (each: Budget['days'][number]) => (role === '' ? each.spent : (each.by_role[role] ?? 0))
  const limit = role === '' ? daily_tokens : (roles[role]?.limit ?? null)
  if (days.every(({ spent }) => spent === 0)) return null
  return (
    <Part
      id="days-title"
      title="Day by day"
      beside={<Select aria-label="Role" value={role} of={[['', 'All roles'], ...known]} set={setRole} />}
    >
      <DayChart
        key={`${role} ${limit}`}
        unit="tokens"
        values={days.map((each) => ({ day: moment(each.day), value: amountOf(each) }))}
        limit={limit ?? undefined}
        forecast={role === '' ? { day: moment(day), value: forecast_today } : undefined}
        label="Tokens for each of the last days, with the limit as a line and the forecast of today as a pale bar; the table below has the numbers"
      />
      <details>
        <summary>The days as a table</summary>
        <Table label="Tokens by day and role" columns={['Day', { number: 'All' }, ...known.map((number) => ({ number }))]}>
          {days.toReversed().map((each) => (
            <tr key={each.day}>
              <th scope="row">{each.day}</th>
              <td class="number">{whole(each.spent)}</td>
              {known.map((name) => (
                <td key={name} class="number">
                  {whole(each.by_role[name] ?? 0)}
                </td>
              ))}
            </tr>
          ))}
        </Table>
      </details>
    </Part>
  )
}

function AgentLimits({ of }: { readonly of: Budget['agents'] }) {
  const limited = Object.entries(of).filter(([, { limit, spent, reserved }]) => limit !== null || spent + reserved > 0)
  if (limited.length === 0) return null
  return (
    <Part id="agents-title" title="Agents today">
      <ul class="list">
        {limited.map(([name, scope]) => (
          <Limit key={name} name={name} scope={scope} at={`#/agents/${encodeURIComponent(name)}`} />
        ))}
      </ul>
    </Part>
  )
}

type LimitProps = {
  readonly name: string
  readonly scope: { readonly limit: number | null; readonly spent: number; readonly reserved: number; readonly remaining: number | null }
  /** Absent: it is changed elsewhere. Null takes the limit away. */
  readonly set?: (tokens: number | null) => Promise<boolean>
  /** The person came for this one. */
  readonly asked?: boolean
  readonly at?: string
}

/** Shows one limit: what is spent and reserved of it, and a field to raise or lower it. */
function Limit({ name, scope: { limit, spent, reserved, remaining }, set, asked = false, at }: LimitProps) {
  const isFull = remaining !== null && remaining <= 0
  return (
    <li class="limit">
      <div class="row spread">
        <strong class="breaks">{at === undefined ? name : <a href={at}>{name}</a>}</strong>
        <span class={isFull ? 'over' : 'quiet'}>
          {whole(spent)} spent{reserved > 0 && `, ${whole(reserved)} reserved`}
          {limit === null ? ', no limit' : ` of ${whole(limit)}`}
        </span>
      </div>
      {limit !== null && (
        <progress
          value={Math.min(spent + reserved, limit)}
          max={Math.max(limit, 1)}
          aria-label={`Used by ${name}`}
          class={isFull ? 'full' : ''}
        />
      )}
      {set && <Change key={String(limit)} name={name} limit={limit} asked={asked} set={set} />}
    </li>
  )
}

type ChangeProps = Pick<LimitProps, 'name'> & {
  readonly limit: number | null
  readonly asked: boolean
  readonly set: NonNullable<LimitProps['set']>
}

function Change({ name, limit, asked, set }: ChangeProps) {
  const [text, setText] = useState(limit === null ? '' : String(limit))
  const field = useRef<HTMLInputElement>(null)
  const wanted = text.trim() === '' ? null : Number(text)
  useEffect(() => {
    if (!asked) return
    field.current?.focus()
    field.current?.select()
  }, [asked])
  return (
    <form class="row" onSubmit={submitBy(() => set(wanted))}>
      <input
        ref={field}
        type="number"
        min={0}
        max={1e12}
        step={1}
        aria-label={`Tokens a day for ${name}; leave empty for no limit`}
        placeholder="no limit"
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      {limit !== null && (
        <>
          <Button word="+ 50 %" kind="small" on={() => setText(String(Math.round(limit * 1.5)))} more={` for ${name}`} />
          <Button word="Double" kind="small" on={() => setText(String(limit * 2))} more={` for ${name}`} />
        </>
      )}
      <button type="submit" disabled={wanted === limit}>
        {limit === null ? 'Set' : wanted === null || wanted > limit ? 'Raise' : 'Lower'}
        <span class="hidden"> {name}</span>
      </button>
    </form>
  )
}

type NewProps = { readonly known: readonly string[]; readonly set: (role: string, tokens: number) => Promise<boolean> }

/** Limits a role that has no limit yet, and sets the time zone in which a day begins. */
function NewRoleLimit({ known, set }: NewProps) {
  async function add(form: HTMLFormElement): Promise<void> {
    const data = new FormData(form)
    if (await set(String(data.get('role')).trim(), Number(data.get('tokens')))) form.reset()
  }
  return (
    <details>
      <summary>Limit another role</summary>
      <form class="fields" onSubmit={submitBy(add)}>
        <InputField id="limit-role" label="Role" name="role" list="limit-roles" required maxLength={64} />
        <InputField id="limit-tokens" label="Tokens a day" name="tokens" type="number" min={0} max={1e12} required />
        <Proposals id="limit-roles" of={roles.value.filter((role) => !known.includes(role))} />
        <button type="submit">Limit it</button>
      </form>
    </details>
  )
}

const zones = Intl.supportedValuesOf('timeZone')

function Zone({ now, set }: { readonly now: string; readonly set: (zone: string) => Promise<boolean> }) {
  return (
    <details>
      <summary>Time zone</summary>
      <form key={now} class="fields" onSubmit={submitBy((form) => set(String(new FormData(form).get('zone')).trim()))}>
        <InputField id="budget-zone" label="A day begins at midnight in" name="zone" list="budget-zones" required defaultValue={now} />
        <Proposals id="budget-zones" of={zones} />
        <button type="submit">Change it</button>
      </form>
    </details>
  )
}
