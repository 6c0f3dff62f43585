/** Shows what belongs to a task: approvals, effects, runs with the log of the newest, and tasks below it. */

import { useRef, useState } from 'preact/hooks'
import type { Approval } from '../../../../control/contract/activity-shapes.ts'
import type { TaskPage } from '../../../../control/contract/plane.ts'
import type { ListedRun } from '../../../../control/contract/run-shapes.ts'
import type { Effect, Task } from '../../../../control/contract/task-shapes.ts'
import { Loaded, LoadedList, type Loading } from '../../parts/loaded.tsx'
import { Button, Part, Select } from '../../parts/small.tsx'
import { doing } from '../../state.ts'
import { decide } from '../actions.tsx'
import { plane, queryOf, resumed, usePlane } from '../net/plane-live.ts'
import { At, NamedButton, RunRow, StateTag, Then } from '../parts/bits.tsx'
import { After, JsonBlock, PlainParagraph, PlainText, Reasoning } from '../parts/plain-text.tsx'
import { RunLog } from '../runs/run-log.tsx'
import { TaskRow } from './task-board.tsx'

type TaskRecordsProps = { readonly id: string }

function useOfTask<T>(id: string, path: string): Loading<T> {
  return usePlane<T>(path, (event) => event.task_id === id || event.type === resumed.type)
}

export function TaskApprovals({ id }: TaskRecordsProps) {
  const found = useOfTask<{ approvals: readonly Approval[] }>(id, `approvals${queryOf({ view: 'full', task_id: id, limit: 50 })}`)
  return (
    <LoadedList from={found} of={({ approvals }) => approvals} part={{ id: 'approvals-title', title: 'Approvals' }}>
      {(approval) => <ApprovalCard key={approval.approval_id} approval={approval} />}
    </LoadedList>
  )
}

function ApprovalCard({ approval }: { readonly approval: Approval }) {
  const { approval_id, operation, state, note, decided_by, decided_at, used_at, expires_at } = approval
  return (
    <article class={state === 'pending' ? 'card ask' : 'card'} aria-label={`Approval ${approval_id}`}>
      <div class="row">
        <StateTag of={state} />
        <strong class="breaks">
          <PlainText text={operation} />
        </strong>
        <span class="mono small quiet">{approval_id}</span>
      </div>
      <Reasoning of={approval} />
      <p class="small quiet">
        {decided_at === null ? (
          <>
            Expires <At time={expires_at} />
          </>
        ) : (
          <>
            Decided <At time={decided_at} /> by <PlainText text={decided_by ?? ''} />
            <After text={note} />
          </>
        )}
        <Then word="used" time={used_at} />
      </p>
      {state === 'pending' && (
        <div class="row">
          <Button word="Approve" kind="main" on={() => decide(approval, 'approve')} more={` ${approval_id}`} />
          <NamedButton word="Deny" name={approval_id} on={() => decide(approval, 'reject')} />
        </div>
      )}
    </article>
  )
}

export function TaskEffects({ id }: TaskRecordsProps) {
  const found = useOfTask<{ effects: readonly Effect[] }>(id, `tasks/${id}/effects`)
  const settle = (key: string, outcome: 'done' | 'redo') =>
    doing(`Resolved: ${key}`, () => plane('POST', `tasks/${id}/resolve`, { key, outcome }))
  return (
    <LoadedList from={found} of={({ effects }) => effects} part={{ id: 'effects-title', title: 'Effects' }} list="ul">
      {({ key, state, description, idempotent, begun_at, done_at, result }) => (
        <li key={key} class="line">
          <div class="grow breaks">
            <StateTag of={state} /> <span class="mono">{key}</span>{' '}
            <span class="quiet small">
              {idempotent && 'may run again, '}
              begun <At time={begun_at} />, done <At time={done_at} otherwise="not yet" />
            </span>
            <PlainParagraph text={description} />
            {result !== undefined && result !== null && <JsonBlock of={result} label={`Result of ${key}`} />}
          </div>
          {state === 'in_doubt' && (
            <div class="row">
              <Button word="It was done" on={() => settle(key, 'done')} more={`: ${key}`} />
              <Button word="Run it again" on={() => settle(key, 'redo')} more={`: ${key}`} />
            </div>
          )}
        </li>
      )}
    </LoadedList>
  )
}

export function TaskRuns({ id }: TaskRecordsProps) {
  const found = useOfTask<{ runs: readonly ListedRun[] }>(id, `runs${queryOf({ task_id: id, limit: 100 })}`)
  const [chosen, choose] = useState<string | undefined>(undefined)
  return (
    <Loaded from={found}>
      {({ runs }) => {
        const shown = runs.find(({ run_id }) => run_id === chosen) ?? runs[0]
        if (!shown) return null
        return (
          <Part id="runs-title" title="Attempts">
            <ul class="list rows">
              {runs.map((run) => (
                <RunRow key={run.run_id} run={run} isOfTask />
              ))}
            </ul>
            <div class="row spread">
              <h3>Log of {shown.run_id}</h3>
              {runs.length > 1 && (
                <Select
                  aria-label="Run whose log is shown"
                  value={shown.run_id}
                  of={runs.map(({ run_id, attempt }) => [run_id, `${run_id}, attempt ${attempt}`])}
                  set={choose}
                />
              )}
            </div>
            <RunLog key={shown.run_id} run={shown} />
          </Part>
        )
      }}
    </Loaded>
  )
}

export function TaskChildren({ id }: TaskRecordsProps) {
  const shown = useRef<readonly Task[]>([])
  const found = usePlane<TaskPage>(
    `tasks${queryOf({ view: 'full', brief: true, parent_task_id: id, limit: 100 })}`,
    ({ type, task_id }) => type === 'task.created' || type === resumed.type || shown.current.some((task) => task.task_id === task_id),
  )
  shown.current = found.value?.tasks ?? []
  return (
    <LoadedList from={found} of={({ tasks }) => tasks} part={{ id: 'children-title', title: 'Tasks below it' }} list="ul" kind="rows">
      {(task) => <TaskRow key={task.task_id} task={task} />}
    </LoadedList>
  )
}
