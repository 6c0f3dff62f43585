/** Answers "can I trust the record": a check of the whole chain in words, the line to keep elsewhere, and the receipts themselves. */

import { useState } from 'preact/hooks'
import { call } from '../net/api.ts'
import { About, counted, InputField, moment, submitBy } from '../parts/fields.tsx'
import { Loaded, LoadedList, useAnswer } from '../parts/loaded.tsx'
import { Block, Button, Empty, Facts, Part, riskKind, Submit, Tag, Time } from '../parts/small.tsx'
import type { RunSummary } from '../shapes.ts'
import { attempt, notice, status } from '../state.ts'
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
        any of them is found.
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
        <InputField
          id="against"
          label="A line that you kept elsewhere"
          help="Optional. With it the check also finds receipts that were cut off at the end."
          name="against"
          class="mono wide"
          placeholder="bc1:…"
        />
        <p>
          <label class="check">
            <input type="checkbox" name="deep" defaultChecked /> Also compare with the journal of all runs
          </label>
        </p>
        <Submit busy={busy}>Verify now</Submit>
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
          : 'Do not rely on it until you know why.'}
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
        The record alone cannot show that its end was cut off. Keep this short line where the agent cannot write: on another computer, in a
        mail to yourself, or on paper. A later check against it proves that nothing before it is missing.
      </p>
      {line !== '' && <Block label="The anchor line" text={line} />}
      <div class="row">
        <Button word={line === '' ? 'Show the line' : 'Show the current line'} on={() => make()} />
        {line !== '' && <Button word="Copy it" on={() => copy()} />}
        {status.value && <span class="quiet small">{counted(status.value.receipts.count, 'receipt')} so far</span>}
      </div>
    </Part>
  )
}

function LastRuns() {
  const runs = useAnswer<{ runs: readonly RunSummary[] }>(
    '/runs?limit=10',
    ({ event }) => event.type === 'run_ended' || event.type === 'run_started',
  )
  return (
    <Part id="runs-title" title="Last runs">
      <LoadedList from={runs} of={({ runs: all }) => all} empty="No receipts yet." list="ol">
        {({ id, channel, started, running, code, prompt }) => (
          <li key={id} class="line">
            <a class="grow breaks" href={`#/runs/${id}`}>
              {prompt || id}
            </a>
            <Ended running={running} code={code} />
            <span class="quiet small">
              {channel}, <Time at={started} />
            </span>
          </li>
        )}
      </LoadedList>
    </Part>
  )
}

type Receipt = {
  readonly id: string
  readonly seq: number
  readonly timestamp: string
  readonly conversation_id: string
  readonly tool: string
  readonly status: string
  readonly risk: string
  readonly approval?: string
  readonly error?: string
  readonly sandbox?: string
  readonly changes?: string
  readonly args_hash: string
  readonly result_hash: string
  readonly previous_hash: string
  readonly receipt_hash: string
}
const perPage = 20

/** Lists receipts, newest first, and says of each whether it follows the one before. */
function Receipts() {
  /** The number of the receipt that the page ends before; undefined: the newest ones. */
  const [before, setBefore] = useState<number | undefined>()
  const page = useAnswer<{ readonly receipts: readonly Receipt[]; readonly unreadable: number }>(
    pathOf(before),
    ({ event }) => before === undefined && /^(tool_result|run_ended|changes_)/.test(event.type),
  )
  return (
    <Part id="receipts-title" title="Receipts">
      <Loaded from={page}>
        {({ receipts, unreadable }) => {
          const first = receipts[0]?.seq ?? before ?? 1
          return (
            <>
              {unreadable > 0 && <p class="card bad">{unreadable} lines among these cannot be read. Verify the record.</p>}
              {receipts.length === 0 && <Empty>There are no receipts yet.</Empty>}
              <ol class="list receipts">
                {receipts.toReversed().map((receipt) => (
                  <li key={receipt.seq}>
                    <ReceiptLine receipt={receipt} before={receipts.find(({ seq }) => seq === receipt.seq - 1)} />
                  </li>
                ))}
              </ol>
              <div class="row">
                {first > 1 && <Button word="Older" on={() => setBefore(first)} />}
                {before !== undefined && <Button word="Newest" on={() => setBefore(undefined)} />}
              </div>
            </>
          )
        }}
      </Loaded>
    </Part>
  )
}

function pathOf(before: number | undefined): string {
  if (before === undefined) return `/receipts?limit=${perPage}`
  const after = Math.max(0, before - 1 - perPage)
  return `/receipts?after=${after}&limit=${before - 1 - after}`
}

const statusKinds: { readonly [status: string]: 'good' | 'bad' | 'warn' } = { allowed: 'good', denied: 'warn', failed: 'bad' }

function ReceiptLine({ receipt, before }: { readonly receipt: Receipt; readonly before: Receipt | undefined }) {
  const { seq, timestamp, tool, status, risk, conversation_id, receipt_hash, previous_hash } = receipt
  const broken = before !== undefined && before.receipt_hash !== previous_hash
  return (
    <details class={broken ? 'receipt broken' : 'receipt'}>
      <summary>
        <span class="mono quiet">{seq}</span> <code class="name">{tool}</code> <Tag kind={statusKinds[status] ?? ''}>{status}</Tag>{' '}
        <span class="quiet small">
          <Time at={moment(timestamp)} />
        </span>{' '}
        <span class="mono quiet hash">{receipt_hash.slice(0, 12)}</span>
        {broken && <Tag kind="bad">does not follow {seq - 1}</Tag>}
      </summary>
      <Facts
        of={[
          ['Id', <code>{receipt.id}</code>],
          ['Risk', <Tag kind={riskKind(risk)}>{risk}</Tag>],
          receipt.approval !== undefined && ['Allowed by', receipt.approval],
          receipt.error !== undefined && ['Error', receipt.error],
          receipt.sandbox !== undefined && ['Sandbox', receipt.sandbox],
          receipt.changes !== undefined && ['Changes', <code>{receipt.changes}</code>],
          conversation_id !== 'none' && ['Conversation', <a href={`#/talk/${conversation_id}`}>{conversation_id}</a>],
          ['Arguments', <code>{receipt.args_hash}</code>],
          ['Result', <code>{receipt.result_hash}</code>],
          [seq === 1 ? 'It is the first' : `Receipt ${seq - 1}`, <code>{previous_hash}</code>],
          ['This receipt', <code>{receipt_hash}</code>],
        ]}
      />
    </details>
  )
}
