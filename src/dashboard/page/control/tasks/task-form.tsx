/** Makes a task, or changes one that has not ended. */

import { useState } from 'preact/hooks'
import type { Task } from '../../../../control/contract/task-shapes.ts'
import { Field, InputField, SelectField, submitBy } from '../../parts/fields.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { Proposals, Submit } from '../../parts/small.tsx'
import { attempt, textOf } from '../../state.ts'
import { roles } from '../control-state.ts'
import { plane, usePlane } from '../net/plane-live.ts'
import { goTo } from '../parts/address.ts'
import { priorities } from '../parts/plain-text.tsx'

export function NewTask({ parent }: { readonly parent?: string | undefined }) {
  // The same key for each try, so that a task that was made although the answer was lost is not made twice.
  const [key] = useState(() => newKey())
  const create = (draft: object) => plane<Task>('POST', 'tasks', { ...draft, parent_task_id: parent }, { 'idempotency-key': key })
  return (
    <>
      <h1>New task</h1>
      {parent !== undefined && <p class="quiet">It belongs to {parent}.</p>}
      <TaskForm save={create} act="Create the task" />
    </>
  )
}

/** Random bytes are there at every address; randomUUID is not. */
function newKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, '0')).join('')
}

export function EditTask({ id }: { readonly id: string }) {
  const found = usePlane<Task>(`tasks/${id}`)
  return (
    <>
      <h1>Edit {id}</h1>
      <Loaded from={found}>
        {(task) => (
          <TaskForm
            key={task.version}
            task={task}
            act="Save"
            save={(patch) => plane<Task>('PATCH', `tasks/${id}`, patch, { 'if-match': String(task.version) })}
          />
        )}
      </Loaded>
    </>
  )
}

function TaskForm({ task, act, save }: { readonly task?: Task; readonly act: string; readonly save: (fields: object) => Promise<Task> }) {
  const [problem, setProblem] = useState('')
  async function submit(form: HTMLFormElement): Promise<void> {
    setProblem('')
    try {
      const fields = fieldsOf(form, task)
      await attempt(async () => {
        const { task_id } = await save(fields)
        goTo(`tasks/${task_id}`, task ? `Saved: ${task_id}` : `Created: ${task_id}`)
      })
    } catch (error) {
      setProblem(textOf(error))
    }
  }
  return (
    <form class="card" onSubmit={submitBy(submit)}>
      <InputField id="task-title" label="Title" name="title" class="wide" required maxLength={500} dir="auto" defaultValue={task?.title} />
      <p />
      <Field id="task-description" label="Description">
        <textarea id="task-description" name="description" rows={6} maxLength={65_536} dir="auto" defaultValue={task?.description} />
      </Field>
      <div class="fields">
        <InputField id="task-role" label="Role" name="role" list="known-roles" required maxLength={64} defaultValue={task?.role} />
        <InputField
          id="task-agent"
          label="Agent"
          help="Only this agent may take it. Leave empty for any agent of the role"
          name="agent_id"
          maxLength={64}
          defaultValue={task?.agent_id ?? ''}
        />
        <SelectField id="task-priority" label="Priority" name="priority" of={priorities} first={task?.priority ?? 'medium'} />
        <InputField id="task-labels" label="Labels" help="With spaces between" name="labels" defaultValue={task?.labels.join(' ')} />
        <InputField
          id="task-needs"
          label="Waits for"
          help="Ids such as TASK-001, separated by spaces"
          name="depends_on"
          defaultValue={task?.depends_on.join(' ')}
        />
        <InputField
          id="task-tries"
          label="Attempts at most"
          name="max_attempts"
          type="number"
          min={1}
          max={100}
          defaultValue={task?.max_attempts ?? 3}
        />
        <InputField
          id="task-budget"
          label="Tokens at most"
          help="For all attempts together. Leave empty for no limit of its own"
          name="budget_tokens"
          type="number"
          min={0}
          defaultValue={task?.budget_tokens ?? ''}
        />
        <InputField id="task-at" label="Not before" help="In the time zone of this browser" name="available_at" type="datetime-local" />
      </div>
      <Proposals id="known-roles" of={roles.value} />
      <details open={task !== undefined && Object.keys(task.context).length > 0}>
        <summary>Context</summary>
        <Field id="task-context" label="A JSON object that the agent gets with the task">
          <textarea
            id="task-context"
            name="context"
            class="mono"
            rows={5}
            spellcheck={false}
            defaultValue={task && Object.keys(task.context).length > 0 ? JSON.stringify(task.context, null, 2) : ''}
          />
        </Field>
      </details>
      {problem !== '' && (
        <p class="banner" role="alert">
          {problem}
        </p>
      )}
      <div class="row actions">
        <Submit>{act}</Submit>
        <a class="button" href={task ? `#/tasks/${task.task_id}` : '#/tasks'}>
          Back
        </a>
      </div>
    </form>
  )
}

/** An empty field is left out of a new task, and taken away from one that is changed. @throws Error when the context is not an object */
function fieldsOf(form: HTMLFormElement, task?: Task): object {
  const value = (name: string) => String(new FormData(form).get(name) ?? '').trim()
  const words = (name: string) =>
    value(name)
      .split(/[\s,]+/)
      .filter((word) => word !== '')
  const emptied = task ? null : undefined
  const number = (name: string) => (value(name) === '' ? emptied : Number(value(name)))
  const context = value('context')
  return {
    title: value('title'),
    description: String(new FormData(form).get('description') ?? ''),
    role: value('role'),
    agent_id: value('agent_id') || emptied,
    priority: value('priority'),
    labels: words('labels'),
    depends_on: task && words('depends_on').join() === task.depends_on.join() ? undefined : words('depends_on'),
    max_attempts: value('max_attempts') === '' ? undefined : Number(value('max_attempts')),
    budget_tokens: number('budget_tokens'),
    available_at: value('available_at') === '' ? undefined : new Date(value('available_at')).toISOString(),
    context: context === '' ? (task ? {} : undefined) : objectOf(context),
  }
}

function objectOf(text: string): object {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value
  } catch {}
  throw new Error('The context is not a JSON object. It looks like {"jail_name": "clawdie-db"}.')
}
