/** Shows one run as a line of a list. */

import type { ListedRun } from '../../../../control/contract/run-shapes.ts'
import { counted } from '../../parts/fields.tsx'
import { At, StateTag } from '../parts/bits.tsx'
import { After, PlainText } from '../parts/plain-text.tsx'

type RunRowProps = { readonly run: ListedRun; readonly marked?: boolean; readonly isOfTask?: boolean }

export function RunRow({ run, marked = false, isOfTask = false }: RunRowProps) {
  const { run_id, task_id, task_title, agent_id, attempt, state, began_at, tokens_used, error, changes } = run
  return (
    <li data-mark={isOfTask ? undefined : run_id} tabIndex={-1} class={marked ? 'marked' : ''} aria-current={marked || undefined}>
      <a class="entry row spread" href={`#/runs/${run_id}`}>
        <span class="mono small quiet">{run_id}</span>
        <span class="grow clip">
          {isOfTask ? (
            <>
              Attempt {attempt}
              <After text={error} />
            </>
          ) : (
            <>
              <span class="mono small">{task_id}</span> <PlainText text={task_title} />
            </>
          )}
        </span>
        <span class="row small">
          {changes === 'waiting' && <StateTag of="waiting" />}
          <StateTag of={state} />
          <span class="quiet">{agent_id}</span>
          <span class="quiet">{counted(tokens_used, 'token')}</span>
          <span class="quiet">
            <At time={began_at} />
          </span>
        </span>
      </a>
    </li>
  )
}
