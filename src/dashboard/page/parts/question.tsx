/** Shows one open question with exactly what a yes would do, and takes the answer. */

import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { call } from '../net/api.ts'
import type { Approval, RunDetails } from '../shapes.ts'
import { doing, may, refresh } from '../state.ts'
import { Loaded, useAnswer } from './loaded.tsx'
import { useMark } from './mark.ts'
import { Diff, riskKind, Tag, Time } from './small.tsx'
import { Input } from './turn.tsx'

export function Question({ approval, marked = false }: { readonly approval: Approval; readonly marked?: boolean }) {
  const { id, tool, risk, reason, summary, created, expires } = approval
  const [note, setNote] = useState('')
  const isOfProcedure = tool.startsWith('sop.')
  const card = useRef<HTMLElement>(null)
  // The second click of a double click may meet the question that took the place of this one.
  const answer = (decision: 'allow' | 'deny') => (event: MouseEvent) => {
    if (event.detail < 2) void decide(approval, decision, note)
  }
  const wasMarked = useRef(marked)
  useEffect(() => {
    if (marked && !wasMarked.current) card.current?.scrollIntoView({ block: 'nearest' })
    wasMarked.current = marked
  }, [marked])
  return (
    <article
      ref={card}
      data-mark={id}
      tabIndex={-1}
      class={marked ? 'card ask marked' : 'card ask'}
      aria-label={`Question about ${tool}`}
      aria-current={marked || undefined}
    >
      <div class="row spread">
        <div class="row">
          <strong>{askingOf(approval)}</strong>
          <Tag kind={riskKind(risk)}>{risk} risk</Tag>
        </div>
        <span class="quiet small">
          <Time at={created} />
        </span>
      </div>
      <p class="mono">{summary}</p>
      {!isOfProcedure && <Exactly approval={approval} />}
      <p class="quiet small">
        Why it asks: {reason}. Without an answer by <Time at={expires} /> it is denied.
      </p>
      {may('approve') ? (
        <div class="row">
          <button type="button" class="main" onClick={answer('allow')}>
            Allow {marked && <kbd>y</kbd>}
          </button>
          <button type="button" onClick={answer('deny')}>
            Deny {marked && <kbd>n</kbd>}
          </button>
          <input
            class="grow"
            aria-label="Reason; the model reads it when you deny"
            placeholder="Reason (the model reads it when you deny)"
            maxLength={2000}
            value={note}
            onInput={(event) => setNote(event.currentTarget.value)}
          />
        </div>
      ) : (
        <p class="quiet">Your token may not answer questions.</p>
      )}
      <p class="quiet small">
        <a href={`#/${isOfProcedure ? 'procedures' : 'talk'}/${approval.conversation_id}`}>
          {isOfProcedure ? 'The run' : 'The conversation'}
        </a>{' '}
        · <span class="mono">{id}</span>
      </p>
    </article>
  )
}

function askingOf({ tool, about }: Approval): string {
  if (tool.startsWith('sop.')) return 'A procedure asks'
  return about === 'changes' ? `May the changes of ${tool} enter the workspace?` : `May ${tool} run?`
}

/** Shows the difference of the changes, or the input of the call. */
function Exactly({ approval: { id, about, run_id, call_id, tool } }: { readonly approval: Approval }): ComponentChildren {
  const whole = useAnswer<Approval>(`/approvals/${id}`)
  return (
    <Loaded from={whole}>
      {({ patch }) => {
        if (patch !== undefined) return <Diff text={patch} />
        if (about === 'changes') return <p class="card bad">Its changes are not kept any more.</p>
        return <Planned runId={run_id} callId={call_id} tool={tool} />
      }}
    </Loaded>
  )
}

function Planned({ runId, callId, tool }: { readonly runId: string; readonly callId: string; readonly tool: string }) {
  const run = useAnswer<RunDetails>(`/runs/${runId}`)
  return (
    <Loaded from={run}>
      {({ steps }) => {
        const step = steps.find((each) => each.type === 'call' && each.call_id === callId)
        return step?.type === 'call' ? <Input of={step.input} tool={tool} /> : null
      }}
    </Loaded>
  )
}

/** Lets y and n answer the marked one of these questions. @returns its id */
export function useMarkedQuestion(questions: () => readonly Approval[]): string | undefined {
  return useMark({
    ids: () => questions().map(({ id }) => id),
    action: (key, id) => {
      const approval = questions().find((each) => each.id === id)
      if (!approval || (key !== 'y' && key !== 'n') || !may('approve')) return undefined
      return () => void decide(approval, key === 'y' ? 'allow' : 'deny')
    },
  })
}

async function decide({ id, tool }: Approval, decision: 'allow' | 'deny', note = ''): Promise<void> {
  const done = `${decision === 'allow' ? 'Allowed' : 'Denied'}: ${tool}`
  await doing(done, () => call('POST', `/approvals/${id}`, { decision, note: note || undefined }))
  await refresh()
}
