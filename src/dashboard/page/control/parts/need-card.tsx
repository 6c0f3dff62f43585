/** Shows one thing that needs the person, with the buttons that answer it. */

import type { Agent } from '../../../../control/contract/fleet-shapes.ts'
import type { Task } from '../../../../control/contract/task-shapes.ts'
import { counted } from '../../parts/fields.tsx'
import { Tag } from '../../parts/small.tsx'
import { cancel, pauseOrResume, resolve, retry, wake, workerCommand } from '../actions.tsx'
import { ApprovalNeed } from './approval-need.tsx'
import { Ago, IdLink, Keyed, tokensOf } from './bits.tsx'
import { Act, type BodyProps, Head } from './need-parts.tsx'
import type { Need } from './needs.ts'
import { PlainText } from './plain-text.tsx'
import { Spent } from './spent-need.tsx'

type Props = { readonly need: Need; readonly id: string; readonly marked: boolean }

const names: { readonly [kind in Need['kind']]: string } = {
  approval: 'Approval',
  spent: 'Budget used up',
  unpaid: 'Waiting for budget',
  doubtful: 'Effect in doubt',
  dead: 'Dead',
  paused: 'Paused',
  unseen: 'Not seen',
  working: 'Working',
}
const kinds: { readonly [kind in Need['kind']]: 'good' | 'bad' | 'warn' | '' } = {
  approval: 'warn',
  spent: 'bad',
  unpaid: 'warn',
  doubtful: 'bad',
  dead: 'bad',
  paused: '',
  unseen: 'bad',
  working: 'good',
}

export function NeedCard({ need, id, marked }: Props) {
  const { kind } = need
  return (
    <article
      data-mark={id}
      tabIndex={-1}
      class={`card need ${kinds[kind] === 'good' || kinds[kind] === '' ? '' : kinds[kind] === 'bad' ? 'bad' : 'ask'} ${marked ? 'marked' : ''}`}
      aria-label={`${names[kind]}: ${need.id}`}
      aria-current={marked || undefined}
    >
      <Body need={need} marked={marked} tag={<Tag kind={kinds[kind]}>{names[kind]}</Tag>} />
    </article>
  )
}

function Body({ need, ...rest }: BodyProps & { readonly need: Need }) {
  switch (need.kind) {
    case 'approval':
      return <ApprovalNeed approval={need.approval} {...rest} />
    case 'spent':
      return <Spent of={need.spent} tasks={need.tasks} {...rest} />
    case 'unpaid':
      return <Unpaid role={need.role} tasks={need.tasks} {...rest} />
    case 'doubtful':
    case 'dead':
      return <Stuck kind={need.kind} task={need.task} {...rest} />
    default:
      return <AgentBody kind={need.kind} agent={need.agent} {...rest} />
  }
}

function Unpaid({ role, tasks, marked, tag }: BodyProps & { readonly role: string; readonly tasks: readonly Task[] }) {
  const first = tasks[0]
  return (
    <>
      <Head tag={tag} title={`${counted(tasks.length, 'task')} of ${role}`} />
      {first && (
        <p>
          <IdLink id={first.task_id} /> <PlainText text={first.title} />
          {first.error !== null && (
            <span class="quiet">
              {': '}
              <PlainText text={first.error} />
            </span>
          )}
        </p>
      )}
      <div class="row">
        <a class="button" data-key="b" href={`#/budget/${encodeURIComponent(role)}`}>
          <Keyed of="b" marked={marked}>
            Look at the budget<span class="hidden"> of {role}</span>
          </Keyed>
        </a>
        <a href={`#/tasks?status=budget_blocked&role=${encodeURIComponent(role)}`}>All of them</a>
      </div>
    </>
  )
}

function Stuck({ kind, task, marked, tag }: BodyProps & { readonly kind: 'doubtful' | 'dead'; readonly task: Task }) {
  const { task_id, title, role, error, attempt, updated_at } = task
  return (
    <>
      <Head tag={tag} title={<PlainText text={title} />}>
        <Ago time={updated_at} />
      </Head>
      <p class="small quiet">
        <IdLink id={task_id} />, {role}, {counted(attempt, 'attempt')}
      </p>
      {error !== null && (
        <p class="breaks">
          <PlainText text={error} />
        </p>
      )}
      {kind === 'dead' ? (
        <div class="row">
          <Act of="r" marked={marked} main name={task_id} act={() => retry(task)}>
            Retry
          </Act>
          <Act of="x" marked={marked} name={task_id} act={() => cancel(task)}>
            Cancel
          </Act>
        </div>
      ) : (
        <div class="row">
          <Act of="d" marked={marked} main name={task_id} act={() => resolve(task, 'done')}>
            It was done
          </Act>
          <Act of="r" marked={marked} name={task_id} act={() => resolve(task, 'redo')}>
            Run it again
          </Act>
          <Act of="x" marked={marked} name={task_id} act={() => resolve(task, 'give_up')}>
            Give up
          </Act>
        </div>
      )}
    </>
  )
}

function AgentBody({ kind, agent, marked, tag }: BodyProps & { readonly kind: Need['kind']; readonly agent: Agent }) {
  const { id, role, paused_reason, last_seen_at, running, spent_today } = agent
  return (
    <>
      <Head tag={tag} title={<a href={`#/agents/${encodeURIComponent(id)}`}>{id}</a>}>
        {last_seen_at === null ? 'never seen' : <Ago time={last_seen_at} />}
      </Head>
      <p class="small">
        <span class="quiet">
          {role}, {tokensOf(spent_today)} tokens today.
        </span>{' '}
        {kind === 'paused' && paused_reason !== null && <PlainText text={paused_reason} />}
        {running.map(({ task_id, title }) => (
          <span class="breaks" key={task_id}>
            <IdLink id={task_id} /> <PlainText text={title} />{' '}
          </span>
        ))}
      </p>
      {kind === 'unseen' && (
        <p class="small breaks">
          No worker of it asks for tasks. On its machine: <code>{workerCommand(agent)}</code>
        </p>
      )}
      <div class="row">
        <Act of="p" marked={marked} main={kind === 'paused'} name={id} act={() => pauseOrResume(agent)}>
          {kind === 'paused' ? 'Resume' : 'Pause'}
        </Act>
        {kind === 'unseen' && (
          <Act of="w" marked={marked} name={id} act={() => wake(id)}>
            Wake
          </Act>
        )}
      </div>
    </>
  )
}
