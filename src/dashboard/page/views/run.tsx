/** Shows the transcript of a run: what was said, and beside each call its verdict, its receipt and what it changed. */

import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { ClaimMark } from '../../../host/contract/claim-mark.ts'
import { ApiError, call } from '../net/api.ts'
import { Loaded, useAnswer } from '../parts/loaded.tsx'
import { Markdown } from '../parts/markdown.tsx'
import { Block, Button, Diff, Empty, Facts, money, riskKind, Tag, Time } from '../parts/small.tsx'
import { Input, Outcome } from '../parts/turn.tsx'
import type { CallStep, RunDetails, RunSummary, Step, Undone } from '../shapes.ts'
import { attempt, may } from '../state.ts'
import { cancel } from './talk.tsx'

export function RunView({ id }: { readonly id: string }) {
  const run = useAnswer<RunDetails>(
    `/runs/${id}`,
    ({ id: number, runId, event }) => runId === id && (number !== undefined || event.type.startsWith('changes_')),
  )
  return (
    <>
      <p class="small">
        <a href="#/runs">All runs</a>
      </p>
      <Loaded from={run}>{(value) => <Whole run={value} again={run.again} />}</Loaded>
    </>
  )
}

function Whole({ run, again }: { readonly run: RunDetails; readonly again: () => void }) {
  const { id, conversation_id, channel, provider, model, started, ended, code, message, running, usage, digest, steps } = run
  const isUndoable = steps.some((step) => step.type === 'call' && canUndo(step))
  const tokens = usage && `${usage.input_tokens.toLocaleString()} in, ${usage.output_tokens.toLocaleString()} out`
  return (
    <>
      <div class="row">
        <Ended running={running} code={code} />
        {code !== 'answered' && message && <span>{message}</span>}
        {running && may('chat') && <Button word="Cancel" kind="small" on={() => attempt(() => cancel(id))} />}
        {isUndoable && may('approve') && (
          <UndoButton path={`/runs/${id}/undo`} done={again}>
            Undo all its changes
          </UndoButton>
        )}
      </div>
      <Facts
        of={[
          ['Conversation', <a href={`#/talk/${conversation_id}`}>{conversation_id}</a>],
          ['Run', <code>{id}</code>],
          ['Model', `${provider}/${model}, over ${channel}`],
          ['Began', <Time at={started} />],
          ended !== undefined && ['Took', `${((ended - started) / 1000).toFixed(1)} s`],
          usage !== undefined && ['Tokens', `${tokens} (${money(usage.cost_micros)})`],
          digest !== undefined && ['Digest', <code>{digest}</code>],
        ]}
      />
      <Proof marks={run.proof} />
      <h2>Transcript</h2>
      {steps.map((step, at) => (
        <StepView key={at} step={step} again={again} />
      ))}
    </>
  )
}

const states = { proved: 'good', stale: 'warn', unproved: 'warn', contradicted: 'bad' } as const

/** Shows what the answer claims, and what the turn proves of it. */
function Proof({ marks }: { readonly marks: readonly ClaimMark[] }) {
  if (marks.length === 0) return null
  return (
    <>
      <h2>Claims of the answer</h2>
      {marks.map(({ state, claim, why, receipt }, at) => (
        <p key={at} class="small">
          <Tag kind={states[state]}>{state}</Tag> {claim} <span class="quiet">{why}</span> {receipt && <code>{receipt}</code>}
        </p>
      ))}
    </>
  )
}

function StepView({ step, again }: { readonly step: Step; readonly again: () => void }): ComponentChildren {
  switch (step.type) {
    case 'message':
      return (
        <div class="said user">
          <p>{step.text}</p>
        </div>
      )
    case 'reply':
      return (
        <div class="said">
          {step.thinking && (
            <details class="quiet small">
              <summary>Thought</summary>
              <p>{step.thinking}</p>
            </details>
          )}
          {step.text && <Markdown text={step.text} />}
          {step.cut && <Tag kind="warn">cut: {step.cut}</Tag>}
        </div>
      )
    case 'call':
      return <CallCard step={step} again={again} />
    case 'error':
      return (
        <p class="card bad">
          <code>{step.code}</code> {step.message}
        </p>
      )
  }
}

const verdicts = { allow: 'good', ask: 'warn', deny: 'bad' } as const

function CallCard({ step, again }: { readonly step: CallStep; readonly again: () => void }) {
  const { tool, summary, risk, verdict, rule, reason, approvals, outcome, receipt, input, changes } = step
  return (
    <article class="card" aria-label={`Call of ${tool}`}>
      <div class="row spread">
        <span class="row">
          <strong>{tool}</strong>
          <Tag kind={riskKind(risk)}>{risk} risk</Tag>
          <Outcome status={outcome?.status} />
        </span>
        <span class="small quiet">{receipt ? <code>{receipt}</code> : 'no receipt'}</span>
      </div>
      <p class="mono">{summary}</p>
      <p class="small">
        <Tag kind={verdicts[verdict]}>{verdict}</Tag> <code>{rule}</code> <span class="quiet">{reason}</span>
      </p>
      {approvals.map(({ about, decision }, at) => (
        <p key={at} class="small">
          Asked about {about === 'changes' ? 'its changes' : 'the call'}:{' '}
          {decision ? `${decision.allow ? 'yes' : 'no'}, by ${decision.by}${decision.note ? ` (${decision.note})` : ''}` : 'no answer yet'}
        </p>
      ))}
      {outcome?.error && <p class="small bad">{outcome.error}</p>}
      <details class="small">
        <summary>Input{outcome ? ' and output' : ''}</summary>
        <Input of={input} tool={tool} />
        {outcome && (
          <>
            <div class="quiet small">output</div>
            <Block label={`Output of ${tool}`} text={outcome.output} />
          </>
        )}
      </details>
      {changes?.set !== undefined && (
        <CallChanges set={changes.set} changes={changes} again={again} isUndoable={canUndo(step) && may('approve')} />
      )}
    </article>
  )
}

function canUndo({ changes }: CallStep): boolean {
  return changes?.state === 'applied' || changes?.state === 'partly undone'
}

export function Ended({ running, code }: { readonly running: boolean; readonly code: string | undefined }) {
  if (running) return <Tag kind="warn">running</Tag>
  if (code === undefined) return <Tag kind="bad">died</Tag>
  return <Tag kind={code === 'answered' ? 'good' : 'bad'}>{code.replaceAll('_', ' ')}</Tag>
}

type ChangeSetProps = {
  /** RUN/CALL. */
  readonly set: string
  readonly changes: NonNullable<CallStep['changes']>
  readonly isUndoable: boolean
  readonly again: () => void
}

/** Shows what a call changed as a difference, and takes it back. */
function CallChanges({ set, changes: { fate, state, summary }, isUndoable, again }: ChangeSetProps) {
  const [isOpen, setOpen] = useState(false)
  const now = state ?? fate
  return (
    <>
      <div class="row small">
        <span>Changes</span>
        <Tag kind={now === 'applied' ? 'good' : 'warn'}>{now}</Tag>
        {summary && <span class="mono">{summary}</span>}
        {state !== undefined && (
          <button type="button" class="small" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
            {isOpen ? 'Hide the difference' : 'Show the difference'}
          </button>
        )}
        {isUndoable && (
          <UndoButton path={`/changes/${set}/undo`} done={again}>
            Undo
          </UndoButton>
        )}
      </div>
      {isOpen && <Difference set={set} />}
    </>
  )
}

function Difference({ set }: { readonly set: string }) {
  const shown = useAnswer<{ patch: string }>(`/changes/${set}`)
  return <Loaded from={shown}>{({ patch }) => <Diff text={patch} />}</Loaded>
}

type Undo = { readonly path: string; readonly done: () => void; readonly children: ComponentChildren }

/** Undoes changes. When others changed a file since, it says so and offers to overwrite it. */
function UndoButton({ path, done, children }: Undo) {
  const [refused, setRefused] = useState<readonly Undone[]>([])
  const undo = (force: boolean) =>
    void attempt(async () => {
      const sets = await undone(path, force)
      setRefused(sets.filter(({ ok }) => !ok))
      done()
    })
  if (refused.length === 0) return <Button word={children} kind="small" on={() => undo(false)} />
  return (
    <span class="card bad" role="alert">
      {refused.map(({ name, message, conflicts = [] }) => (
        <span key={name}>
          Not undone: {message} {conflicts.map(({ path, reason }) => `${path} (${reason})`).join(', ')}{' '}
        </span>
      ))}
      <Button word="Undo and overwrite that" kind="small" on={() => undo(true)} />{' '}
      <Button word="Leave it" kind="small" on={() => setRefused([])} />
    </span>
  )
}

/** A conflict is an answer too: 409 with the same shape. */
async function undone(path: string, force: boolean): Promise<readonly Undone[]> {
  const answer = await call<Undone | { undone: readonly Undone[] }>('POST', path, { force }).catch((error: unknown) => {
    if (error instanceof ApiError && error.status === 409 && isUndone(error.answer)) return error.answer
    throw error
  })
  return 'undone' in answer ? answer.undone : [answer]
}

function isUndone(answer: unknown): answer is Undone | { undone: readonly Undone[] } {
  return typeof answer === 'object' && answer !== null && ('undone' in answer || 'ok' in answer)
}

/**
 * Answers "what did it do": the runs, newest first, each with its transcript. `rest` is empty, the id of a run, or that of a
 * conversation whose runs are shown.
 */
export function Runs({ rest }: { readonly rest: string }) {
  return (
    <>
      <h1>Runs</h1>
      {rest.startsWith('run_') ? <RunView key={rest} id={rest} /> : <RunList key={rest} conversation={rest} />}
    </>
  )
}

type Page = { readonly runs: readonly RunSummary[]; readonly next?: string }

function RunList({ conversation }: { readonly conversation: string }) {
  const filter = conversation === '' ? '' : `&conversation_id=${conversation}`
  const [older, setOlder] = useState<Page>({ runs: [] })
  const newest = useAnswer<Page>(`/runs?limit=30${filter}`, ({ event }) => /^(run_|conversation_deleted|memory_cleared)/.test(event.type))
  const more = (before: string) =>
    void attempt(async () => {
      const page = await call<Page>('GET', `/runs?limit=30${filter}&before=${before}`)
      setOlder((known) => ({ ...page, runs: [...known.runs, ...page.runs] }))
    })
  return (
    <>
      {conversation !== '' && (
        <p class="small">
          Only those of <a href={`#/talk/${conversation}`}>one conversation</a>. <a href="#/runs">Show all</a>
        </p>
      )}
      <Loaded from={newest}>
        {(page) => {
          const known = new Set(page.runs.map(({ id }) => id))
          const runs = [...page.runs, ...older.runs.filter(({ id }) => !known.has(id))]
          const next = older.runs.length === 0 ? page.next : older.next
          if (runs.length === 0) return <Empty>No runs yet.</Empty>
          return (
            <>
              <ul class="list runs">
                {runs.map((run) => (
                  <Line key={run.id} run={run} />
                ))}
              </ul>
              {next !== undefined && <Button word="Older runs" on={() => more(next)} />}
            </>
          )
        }}
      </Loaded>
    </>
  )
}

function Line({ run: { id, prompt, started, channel, model, running, code } }: { readonly run: RunSummary }) {
  return (
    <li>
      <a class="entry row spread" href={`#/runs/${id}`}>
        <span class="grow clip">{prompt || id}</span>
        <span class="row small">
          <Ended running={running} code={code} />
          <span class="quiet">
            {channel}, {model}
          </span>
          <span class="quiet">
            <Time at={started} />
          </span>
        </span>
      </a>
    </li>
  )
}
