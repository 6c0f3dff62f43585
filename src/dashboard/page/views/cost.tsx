/** Answers "what does it cost": over time, by model, conversation or channel, and against the limits. */

import type { ComponentChildren, ComponentProps } from 'preact'
import { useState } from 'preact/hooks'
import type { CostReport } from '../../../channels/http/answer-shapes.ts'
import { DayChart, type DayValue } from '../parts/chart.tsx'
import { About, counted, moment, whole } from '../parts/fields.tsx'
import { Loaded, useAnswer } from '../parts/loaded.tsx'
import { Empty, money, Part, Select, Table, Tile, Time } from '../parts/small.tsx'

type Amounts = CostReport['total']
type CostRow = CostReport['rows'][number]
type Limit = CostReport['limits'][number]
type Unit = 'cost' | 'tokens'

const spans = ['7', '30', '90', '365'].map((span) => [span, `Last ${span} days`] as const)
const units = [
  ['cost', 'Cost in US dollars'],
  ['tokens', 'Tokens'],
] as const
const keys = { model: 'Model', conversation: 'Conversation', channel: 'Channel', token: 'Token', agent: 'Agent' } as const

export function Cost(_: { readonly rest: string }) {
  const [days, setDays] = useState(30)
  const report = useAnswer<CostReport>(`/cost?by=day&days=${days}`, ({ event }) => event.type === 'run_ended')
  return (
    <>
      <h1>Cost</h1>
      <About>See what the model calls have used over time and who made them, and how much of each limit is left. Days are in UTC.</About>
      <div class="row actions">
        <Labelled id="cost-days" label="Time" value={String(days)} of={spans} set={(span) => setDays(Number(span))} />
      </div>
      <Loaded from={report}>
        {(found) => (
          <>
            <Totals of={found} />
            <OverTime key={`${found.from} ${found.total.cost_micros > 0}`} of={found} />
            <Limits of={found.limits} />
          </>
        )}
      </Loaded>
      <ByKey days={days} />
    </>
  )
}

function Totals({ of: { total, reserved, day_ahead } }: { readonly of: CostReport }) {
  const { calls, unpriced_calls, unsettled_calls, lost_calls } = total
  return (
    <>
      <div class="tiles">
        <Tile name="Cost" value={costOf(total)} />
        <Tile name="Tokens" value={whole(total.tokens)} />
        <Tile name="Model calls" value={whole(calls)} />
        <Tile name="Reserved now" value={reserved.cost_micros > 0 ? money(reserved.cost_micros) : counted(reserved.tokens, 'token')} />
      </div>
      {unpriced_calls > 0 && (
        <p class="card ask">
          The price of {counted(unpriced_calls, 'call')} is not known. Their tokens are counted, and their cost is not in any sum here.
        </p>
      )}
      {unsettled_calls > 0 && (
        <p class="quiet">{counted(unsettled_calls, 'call')} were interrupted; the tokens reserved for them count as spent.</p>
      )}
      {lost_calls > 0 && (
        <p class="quiet">{counted(lost_calls, 'call')} were interrupted without a reservation: what they used is not known.</p>
      )}
      {day_ahead !== null && <p class="card ask">Calls were counted on {day_ahead}, which the clock of the server has not reached yet.</p>}
    </>
  )
}

/** Returns the cost as text; a plus says that calls without a known price are missing from it. */
function costOf({ cost_micros, unpriced_calls, calls }: Amounts): string {
  if (unpriced_calls > 0 && unpriced_calls === calls) return 'unknown'
  return unpriced_calls > 0 ? `${money(cost_micros)}+` : money(cost_micros)
}

function OverTime({ of }: { readonly of: CostReport }) {
  const [unit, setUnit] = useState<Unit>(of.total.cost_micros > 0 ? 'cost' : 'tokens')
  const values = everyDay(of, unit)
  const used = of.rows.filter(({ calls }) => calls > 0)
  const choice = (
    <div class="row">
      <Labelled id="cost-unit" label="Show" value={unit} of={units} set={(value) => setUnit(value as Unit)} />
    </div>
  )
  return (
    <Part id="time-title" title="Day by day" beside={choice}>
      {used.length === 0 ? (
        <Empty>No model was called in this time.</Empty>
      ) : (
        <>
          <DayChart
            key={unit}
            values={values}
            label={`${unit === 'cost' ? 'Cost in US dollars' : 'Tokens'} for each day from ${of.from} to ${of.to}; the table below has the numbers`}
            unit={unit}
          />
          <details>
            <summary>The days as a table</summary>
            <Amounted head="Day" of={used.toReversed()} name={({ key }) => key} />
          </details>
        </>
      )}
    </Part>
  )
}

function Labelled({ id = '', label, ...select }: ComponentProps<typeof Select> & { readonly label: string }) {
  return (
    <>
      <label for={id} class="beside">
        {label}
      </label>
      <Select id={id} {...select} />
    </>
  )
}

/** The report leaves out days without a call; the chart shows them as empty. */
function everyDay({ rows, from, to }: CostReport, unit: Unit): readonly DayValue[] {
  const known = new Map(rows.map((row) => [row.key, unit === 'cost' ? row.cost_micros / 1_000_000 : row.tokens]))
  const [first, last] = [moment(from), moment(to)]
  return Array.from({ length: Math.round((last - first) / 86_400_000) + 1 }, (_, at) => {
    const day = first + at * 86_400_000
    return { day, value: known.get(new Date(day).toISOString().slice(0, 10)) ?? 0 }
  })
}

function Limits({ of }: { readonly of: readonly Limit[] }) {
  const shown = (value: number, unit: Limit['unit']) => (unit === 'micros' ? money(value) : counted(value, 'token'))
  return (
    <Part id="limits-title" title="Limits">
      {of.length === 0 && (
        <Empty>
          No limit is set. The settings <code>limits.*</code> set one for a run, a conversation, a channel or a day.
        </Empty>
      )}
      <ul class="list">
        {of.map(({ scope, setting, unit, spent, reserved, limit, left, free_at }) => (
          <li key={`${scope} ${setting}`} class="limit">
            <div class="row spread">
              <span class="breaks">
                {scope.replace(':', ' ')} <span class="quiet small">{setting}</span>
              </span>
              <span class={left === 0 ? 'over' : 'quiet'}>
                {left === 0 ? 'nothing left' : `${shown(left, unit)} left`} of {shown(limit, unit)}
              </span>
            </div>
            <progress
              value={Math.min(spent + reserved, limit)}
              max={limit}
              aria-label={`${setting} of ${scope}`}
              class={left === 0 ? 'full' : ''}
            />
            {left === 0 && free_at !== null && (
              <span class="small quiet">
                Free again <Time at={moment(free_at)} />
              </span>
            )}
          </li>
        ))}
      </ul>
    </Part>
  )
}

function ByKey({ days }: { readonly days: number }) {
  const [by, setBy] = useState<keyof typeof keys>('model')
  const report = useAnswer<CostReport>(`/cost?by=${by}&days=${days}&limit=100`, ({ event }) => event.type === 'run_ended')
  const choice = (
    <div class="row">
      <Labelled id="cost-by" label="Add up by" value={by} of={Object.entries(keys)} set={(value) => setBy(value as keyof typeof keys)} />
    </div>
  )
  return (
    <Part id="by-title" title={`By ${keys[by].toLowerCase()}`} beside={choice}>
      <Loaded from={report}>
        {({ rows, more }) =>
          rows.length === 0 ? (
            <Empty>No model was called in this time.</Empty>
          ) : (
            <>
              <Amounted
                head={keys[by]}
                of={rows}
                name={({ key, title }) =>
                  by === 'conversation' && key !== '' ? <a href={`#/talk/${key}`}>{title ?? key}</a> : (title ?? (key || 'not known'))
                }
              />
              {more > 0 && <p class="quiet small">{counted(more, 'row')} more cost less.</p>}
            </>
          )
        }
      </Loaded>
    </Part>
  )
}

type AmountedProps = { readonly head: string; readonly of: readonly CostRow[]; readonly name: (row: CostRow) => ComponentChildren }

function Amounted({ head, of, name }: AmountedProps) {
  return (
    <Table label={`Amounts by ${head.toLowerCase()}`} columns={[head, { number: 'Cost' }, { number: 'Tokens' }, { number: 'Calls' }]}>
      {of.map((row) => (
        <tr key={row.key}>
          <th scope="row">{name(row)}</th>
          <td class="number">{costOf(row)}</td>
          <td class="number">{whole(row.tokens)}</td>
          <td class="number">{whole(row.calls)}</td>
        </tr>
      ))}
    </Table>
  )
}
