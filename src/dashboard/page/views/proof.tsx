/** Answers "can I trust the record": a check of the whole chain in words, the line to keep elsewhere, and the receipts themselves. */

import { useState } from 'preact/hooks'
import { call } from '../net/api.ts'
import { About, counted, Field, submitBy } from '../parts/fields.tsx'
import { Loaded, useLoaded } from '../parts/loaded.tsx'
import { Block, Button, Empty, Part, Time } from '../parts/small.tsx'
import type { RunSummary } from '../shapes.ts'
import { attempt, notice, status } from '../state.ts'
import { Receipts } from './details/receipts.tsx'
import { Ended } from './run.tsx'

type Checked = {
  readonly ok: boolean
  readonly deep: boolean
  readonly count: number
  readonly completeness: string
  readonly problems: readonly string[]
  readonly warnings: readonly string[]
  readonly unfinished: readonly string[]
}
export function Proof(_: { readonly rest: string }) {
  return (
    <>
      <h1>Proof</h1>
      <About>
        Every call of a tool leaves a receipt, also when it was refused. Each receipt contains the hash of the one before, so a change to
        any of them shows.
      </About>
      <Verify />
      <AnchorLine />
      <Receipts />
      <LastRuns />
    </>
  )
}

function Verify() {
  const [checked, setChecked] = useState<Checked | undefined>()
  const [busy, setBusy] = useState(false)
  async function verify(form: FormData): Promise<void> {
    const against = String(form.get('against') ?? '').trim()
    setBusy(true)
    setChecked(undefined)
    await attempt(async () => {
      const wanted = { deep: form.get('deep') === 'on', ...(against === '' ? {} : { against }) }
      setChecked(await call<Checked>('POST', '/receipts/verify', wanted))
    })
    setBusy(false)
  }
  return (
    <Part id="verify-title" title="Verify">
      <form class="card" onSubmit={submitBy((form) => verify(new FormData(form)))}>
        <Field
          id="against"
          label="A line that you kept elsewhere"
          help="Optional. With it the check also finds receipts that were cut off at the end."
        >
          <input id="against" name="against" class="mono wide" placeholder="bc1:…" aria-describedby="against-help" />
        </Field>
        <p>
          <label class="check">
            <input type="checkbox" name="deep" defaultChecked /> Also compare with the journal of all runs
          </label>
        </p>
        <button type="submit" class="main" disabled={busy}>
          Verify now
        </button>
      </form>
      <div role="status">
        {busy && <p class="quiet working">Checking</p>}
        {checked && <Result of={checked} />}
      </div>
    </Part>
  )
}

function Result({ of: { ok, deep, count, completeness, problems, warnings, unfinished } }: { readonly of: Checked }) {
  return (
    <div class={`card ${ok ? 'good' : 'bad'}`}>
      <p>
        <strong>{ok ? 'The record is intact.' : 'The record was altered or is damaged.'}</strong>{' '}
        {ok
          ? `${counted(count, 'receipt')} ${count === 1 ? 'was' : 'were'} checked${deep ? ' and compared with the journal' : ''}; completeness ${completeness}.`
          : 'Do not rely on it before you know why.'}
      </p>
      <Sentences of={problems} />
      <Sentences of={warnings} name="Warnings" />
      <Sentences of={unfinished} name="Calls that a crash left without a result" />
    </div>
  )
}

function Sentences({ of, name }: { readonly of: readonly string[]; readonly name?: string }) {
  if (of.length === 0) return null
  return (
    <>
      {name !== undefined && <p class="small quiet">{name}</p>}
      <ul>
        {of.map((sentence) => (
          <li key={sentence} class="breaks">
            {sentence}
          </li>
        ))}
      </ul>
    </>
  )
}

function AnchorLine() {
  const [line, setLine] = useState('')
  const make = () => attempt(async () => setLine((await call<{ line: string }>('GET', '/receipts/anchor')).line))
  const copy = () =>
    attempt(async () => {
      await navigator.clipboard.writeText(line)
      notice.value = { text: 'Copied.' }
    })
  return (
    <Part id="anchor-title" title="Anchor">
      <p>
        Nobody can see from the record alone that its end was cut off. Keep this short line where the agent cannot write: on another
        computer, in a mail to yourself, or on paper. A later check against it proves that nothing before it is missing.
      </p>
      {line !== '' && <Block label="The anchor line" text={line} />}
      <div class="row">
        <Button on={() => make()}>{line === '' ? 'Show the line' : 'Show the line of now'}</Button>
        {line !== '' && <Button on={() => copy()}>Copy it</Button>}
        {status.value && <span class="quiet small">{counted(status.value.receipts.count, 'receipt')} so far</span>}
      </div>
    </Part>
  )
}

function LastRuns() {
  const runs = useLoaded(
    () => call<{ runs: readonly RunSummary[] }>('GET', '/runs?limit=10'),
    'runs',
    ({ event }) => event.type === 'run_ended' || event.type === 'run_started',
  )
  return (
    <Part id="runs-title" title="Last runs">
      <Loaded from={runs}>
        {({ runs: all }) =>
          all.length === 0 ? (
            <Empty>Nothing has run yet.</Empty>
          ) : (
            <ol class="list">
              {all.map(({ id, channel, started, running, code, prompt }) => (
                <li key={id} class="line">
                  <a class="grow breaks" href={`#/runs/${id}`}>
                    {prompt || id}
                  </a>
                  <Ended running={running} code={code} />
                  <span class="quiet small">
                    {channel}, <Time at={started} />
                  </span>
                </li>
              ))}
            </ol>
          )
        }
      </Loaded>
    </Part>
  )
}
