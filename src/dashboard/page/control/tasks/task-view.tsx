/** Shows one task: what it is, what can be done about it, its runs with the log, its effects, approvals and history. */

import type { Task } from '../../../../control/contract/task-shapes.ts'
import { Loaded } from '../../parts/loaded.tsx'
import { Button, Facts, Part } from '../../parts/small.tsx'
import { doing } from '../../state.ts'
import { cancel, resolve, retry } from '../actions.tsx'
import { plane, resumed, usePlane } from '../net/plane-live.ts'
import { At, IdHeading, IdLink, PriorityTag, TaskStatus, tokensOf } from '../parts/bits.tsx'
import { EventList } from '../parts/event-list.tsx'
import { canCancel, hasEnded, JsonBlock, PlainBlock, PlainText } from '../parts/plain-text.tsx'
import { canRetry } from './task-board.tsx'
import { TaskApprovals, TaskChildren, TaskEffects, TaskRuns } from './task-records.tsx'

export function TaskView({ id }: { readonly id: string }) {
  const found = usePlane<Task>(`tasks/${encodeURIComponent(id)}`, ({ task_id, type }) => task_id === id || type === resumed.type)
  return (
    <>
      <p class="small">
        <a href="#/tasks">All tasks</a>
      </p>
      <IdHeading id={id} title={found.value?.title} />
      <Loaded from={found}>
        {(task) => (
          <>
            <div class="row">
              <TaskStatus task={task} />
              <PriorityTag of={task.priority} />
              <TaskActions task={task} />
            </div>
            {task.error !== null && <PlainBlock text={task.error} label="Error" />}
            <TaskFacts task={task} />
            {task.description !== '' && <PlainBlock text={task.description} label="Description" />}
            {Object.keys(task.context).length > 0 && (
              <details>
                <summary>Context</summary>
                <JsonBlock of={task.context} label="Context" />
              </details>
            )}
            {task.result !== null && (
              <Part id="result-title" title="Result">
                <Result of={task.result} />
              </Part>
            )}
          </>
        )}
      </Loaded>
      <TaskApprovals id={id} />
      <TaskEffects id={id} />
      <TaskRuns id={id} />
      <TaskChildren id={id} />
      <Part id="history-title" title="History">
        <EventList filters={{ task_id: id }} concerns={({ task_id }) => task_id === id} />
      </Part>
    </>
  )
}

function TaskActions({ task }: { readonly task: Task }) {
  const { task_id, status, blocked_reason, agent_id } = task
  const isHeld = blocked_reason === 'operator'
  const hold = () =>
    doing(isHeld ? 'It may run again' : 'It waits until you release it', () => plane('PATCH', `tasks/${task_id}`, { blocked: !isHeld }))
  return (
    <>
      {blocked_reason === 'in_doubt' && (
        <>
          <Button word="It was done" kind="main" on={() => resolve(task, 'done')} />
          <Button word="Run it again" on={() => resolve(task, 'redo')} />
          <Button word="Give up" on={() => resolve(task, 'give_up')} />
        </>
      )}
      {canRetry(task) && <Button word="Retry" on={() => retry(task)} />}
      {!hasEnded(task) && status !== 'running' && (
        <>
          <a class="button" href={`#/tasks/${task_id}/edit`}>
            Edit
          </a>
          {(status === 'pending' || isHeld) && <Button word={isHeld ? 'Release' : 'Hold'} on={() => hold()} />}
        </>
      )}
      {canCancel(task) && <Button word="Cancel" on={() => cancel(task)} />}
      <a class="button" href={`#/tasks/new?parent=${task_id}`}>
        New subtask<span class="hidden"> for {agent_id ?? 'any agent'}</span>
      </a>
    </>
  )
}

function TaskFacts({ task }: { readonly task: Task }) {
  const { role, agent_id, labels, depends_on, parent_task_id, attempt, max_attempts, tokens_used, budget_tokens } = task
  const { created_at, created_by, available_at, lease_until, run_id, ended_at, status } = task
  const isLater = status === 'pending' && Date.parse(available_at) > Date.now()
  return (
    <Facts
      of={[
        ['Role', role],
        agent_id !== null && ['Agent', <IdLink id={agent_id} />],
        labels.length !== 0 && ['Labels', labels.map((label) => `#${label}`).join(' ')],
        depends_on.length !== 0 && ['Waits for', <Ids of={depends_on} />],
        parent_task_id !== null && ['Part of', <IdLink id={parent_task_id} />],
        ['Attempts', `${attempt} of ${max_attempts}`],
        ['Tokens', budget_tokens === null ? tokensOf(tokens_used) : `${tokensOf(tokens_used)} of ${tokensOf(budget_tokens)}`],
        isLater && ['Not before', <At time={available_at} />],
        run_id !== null && ['Run', <IdLink id={run_id} />],
        lease_until !== null && ['Lease until', <At time={lease_until} />],
        [
          'Created',
          <>
            <At time={created_at} /> by <PlainText text={created_by} />
          </>,
        ],
        ended_at !== null && ['Ended', <At time={ended_at} />],
      ]}
    />
  )
}

function Ids({ of }: { readonly of: readonly string[] }) {
  return (
    <span class="row">
      {of.map((id) => (
        <IdLink key={id} id={id} />
      ))}
    </span>
  )
}

/** The output of a completion is text; whatever else came with it is shown as it is. */
function Result({ of: { output, ...rest } }: { readonly of: NonNullable<Task['result']> }) {
  return (
    <>
      {typeof output === 'string' && output !== '' && <PlainBlock text={output} label="Output" />}
      {Object.keys(rest).length > 0 && <JsonBlock of={rest} label="The result as JSON" />}
    </>
  )
}
