/** Answers "what needs me": the open questions with their exact plan or difference, then what runs. */

import { useEffect, useRef, useState } from 'preact/hooks'
import { call } from '../net/api.ts'
import { Diff, Empty, Facts, riskKind, Tag, Time } from '../parts/small.tsx'
import type { Approval } from '../shapes.ts'
import { approvals, attempt, may, notice, refresh, status } from '../state.ts'
import { RunningNow } from './running.tsx'

export function Now() {
  const waiting = approvals.value
  const [at, setAt] = useState(0)
  const current = waiting[Math.min(at, waiting.length - 1)]
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return
      if (event.key === 'j') setAt((now) => Math.min(now + 1, waiting.length - 1))
      else if (event.key === 'k') setAt((now) => Math.max(now - 1, 0))
      else if (current && may('approve') && event.key === 'y') void decide(current, 'allow')
      else if (current && may('approve') && event.key === 'n') void decide(current, 'deny')
    }
    addEventListener('keydown', press)
    return () => removeEventListener('keydown', press)
  }, [current?.id, waiting.length])
  return (
    <>
      <h1>Now</h1>
      <section aria-label="Waiting for you">
        {waiting.length === 0 ? (
          <Empty>Nothing waits for you.</Empty>
        ) : (
          <p class="quiet small">
            <kbd>y</kbd> allows and <kbd>n</kbd> denies the marked question; <kbd>j</kbd> and <kbd>k</kbd> move the mark.
          </p>
        )}
        {waiting.map((approval) => (
          <Question key={approval.id} approval={approval} marked={approval === current} />
        ))}
      </section>
      <RunningNow />
      {status.value && (
        <section aria-label="This home">
          <h2>This home</h2>
          <Facts
            of={[
              ['Model', `${status.value.provider}/${status.value.model}`],
              ['Level', status.value.autonomy],
              ['Workspace', status.value.workspace],
              ['Channels', status.value.channels.join(', ') || 'none'],
              ['Receipts', String(status.value.receipts.count)],
              ['Version', status.value.version],
            ]}
          />
        </section>
      )}
    </>
  )
}

function Question({ approval, marked }: { readonly approval: Approval; readonly marked: boolean }) {
  const { id, tool, risk, reason, summary, created, expires, changes } = approval
  const [note, setNote] = useState('')
  const card = useRef<HTMLElement>(null)
  useEffect(() => {
    if (marked) card.current?.scrollIntoView({ block: 'nearest' })
  }, [marked])
  return (
    <article ref={card} class="card ask" aria-label={`Question about ${tool}${marked ? ', marked' : ''}`} data-approval={id}>
      <div class="row spread">
        <div class="row">
          {marked && <Tag>marked</Tag>}
          <strong>{tool}</strong>
          <Tag kind={riskKind(risk)}>{risk} risk</Tag>
        </div>
        <span class="quiet small">
          <Time at={created} />
        </span>
      </div>
      <p class="mono">{summary}</p>
      <p>{reason}</p>
      {changes && <Diff text={changes.diff} />}
      <p class="quiet small">
        Ends by itself, as a no: <Time at={expires} />
      </p>
      {may('approve') ? (
        <div class="row">
          <button type="button" class="main" onClick={() => void decide(approval, 'allow', note)}>
            Allow
            {marked && (
              <>
                {' '}
                <kbd>y</kbd>
              </>
            )}
          </button>
          <button type="button" onClick={() => void decide(approval, 'deny', note)}>
            Deny
            {marked && (
              <>
                {' '}
                <kbd>n</kbd>
              </>
            )}
          </button>
          <input
            aria-label="Why, for the model"
            placeholder="Why (the model is told)"
            value={note}
            onInput={(event) => setNote(event.currentTarget.value)}
          />
        </div>
      ) : (
        <p class="quiet">Your token may not answer questions.</p>
      )}
    </article>
  )
}

async function decide({ id, tool }: Approval, decision: 'allow' | 'deny', note = ''): Promise<void> {
  const done = await attempt(() => call('POST', `/approvals/${encodeURIComponent(id)}`, { decision, ...(note === '' ? {} : { note }) }))
  if (done) notice.value = { text: `${decision === 'allow' ? 'Allowed' : 'Denied'}: ${tool}` }
  await attempt(refresh)
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
}
