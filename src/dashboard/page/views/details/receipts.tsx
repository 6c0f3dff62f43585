/** Lists receipts, newest first, and says of each whether it follows the one before. */

import { useState } from 'preact/hooks'
import { call } from '../../net/api.ts'
import { moment } from '../../parts/fields.tsx'
import { Loaded, useLoaded } from '../../parts/loaded.tsx'
import { Button, Empty, Facts, Part, riskKind, Tag, Time } from '../../parts/small.tsx'

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

export function Receipts() {
  /** The number of the receipt that the page ends before; undefined: the newest ones. */
  const [before, setBefore] = useState<number | undefined>()
  const page = useLoaded(
    () => call<{ readonly receipts: readonly Receipt[]; readonly unreadable: number }>('GET', pathOf(before)),
    `receipts ${before}`,
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
                {first > 1 && <Button on={() => setBefore(first)}>Older</Button>}
                {before !== undefined && <Button on={() => setBefore(undefined)}>Newest</Button>}
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
          ...(receipt.approval === undefined ? [] : [['Allowed by', receipt.approval] as const]),
          ...(receipt.error === undefined ? [] : [['Error', receipt.error] as const]),
          ...(receipt.sandbox === undefined ? [] : [['Sandbox', receipt.sandbox] as const]),
          ...(receipt.changes === undefined ? [] : [['Changes', <code>{receipt.changes}</code>] as const]),
          ...(conversation_id === 'none' ? [] : [['Conversation', <a href={`#/talk/${conversation_id}`}>{conversation_id}</a>] as const]),
          ['Arguments', <code>{receipt.args_hash}</code>],
          ['Result', <code>{receipt.result_hash}</code>],
          [seq === 1 ? 'It is the first' : `Receipt ${seq - 1}`, <code>{previous_hash}</code>],
          ['This receipt', <code>{receipt_hash}</code>],
        ]}
      />
    </details>
  )
}
