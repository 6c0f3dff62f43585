/** Shows one agent: what it does, its limits and keys, its worker, and what it wrote into its session. */

import type { ControlEvent } from '../../../../control/contract/activity-shapes.ts'
import type { Agent, AgentKey } from '../../../../control/contract/fleet-shapes.ts'
import type { SessionLine } from '../../../../control/contract/run-shapes.ts'
import { About, InputField, submitBy } from '../../parts/fields.tsx'
import { Loaded, LoadedList } from '../../parts/loaded.tsx'
import { useMark } from '../../parts/mark.ts'
import { Button, Empty, Facts, Part, Proposals, Submit, Tag } from '../../parts/small.tsx'
import { attempt, doing } from '../../state.ts'
import { agentPath, pauseOrResume, rotateKey, showNewKey, wake } from '../actions.tsx'
import { agents, isKnown, isUnseen, roles } from '../control-state.ts'
import { plane, resumed, usePlane } from '../net/plane-live.ts'
import { goTo, idIn } from '../parts/address.ts'
import { confirmed } from '../parts/ask.tsx'
import { Ago, At, IdLink, NamedButton, Then, tokensOf } from '../parts/bits.tsx'
import { EventList, SessionLines } from '../parts/event-list.tsx'
import { JsonBlock, PlainParagraph, PlainText } from '../parts/plain-text.tsx'

export function AgentView({ id }: { readonly id: string }) {
  const found = usePlane<Agent>(agentPath(id), ({ agent_id, type }) => agent_id === id || type === resumed.type)
  return (
    <>
      <p class="small">
        <a href="#/agents">All agents</a>
      </p>
      <h1 class="breaks">
        <PlainText text={id} />
      </h1>
      <Loaded from={found}>
        {(agent) => (
          <>
            <div class="row">
              <AgentState agent={agent} />
              <Actions agent={agent} />
            </div>
            <PlainParagraph text={agent.description} />
            <Running of={agent.running} />
            <Facts
              of={[
                ['Role', agent.role],
                ['Tokens today', tokensOf(agent.spent_today)],
                ['Tokens a day', tokensOf(agent.daily_tokens)],
                ['Last seen', <At time={agent.last_seen_at} />],
                ['Added', <At time={agent.created_at} />],
              ]}
            />
            <details>
              <summary>Change it</summary>
              <Edit key={`${agent.role} ${agent.daily_tokens} ${agent.description}`} agent={agent} />
            </details>
            {agent.worker !== null && (
              <details>
                <summary>Report of its worker</summary>
                <JsonBlock of={agent.worker} label="Worker" />
              </details>
            )}
          </>
        )}
      </Loaded>
      <Keys id={id} />
      <Sessions id={id} />
      <Part id="history-title" title="History">
        <EventList filters={{ agent_id: id }} concerns={({ agent_id }) => agent_id === id} />
      </Part>
    </>
  )
}

function Actions({ agent }: { readonly agent: Agent }) {
  const { id, paused } = agent
  async function remove(): Promise<void> {
    const body = <p>Its keys become invalid. Its runs and their records stay.</p>
    if (!(await confirmed({ title: `Remove ${id}?`, body, act: 'Remove the agent', isDangerous: true }))) return
    if (await attempt(() => plane('DELETE', agentPath(id)))) goTo('agents', `Removed: ${id}`)
  }
  return (
    <>
      <Button word={paused ? 'Resume' : 'Pause'} on={() => pauseOrResume(agent)} />
      <Button word="Wake" on={() => wake(id)} />
      <Button word="Remove" on={() => remove()} />
    </>
  )
}

function Edit({ agent: { id, role, daily_tokens, description, heartbeat_enabled } }: { readonly agent: Agent }) {
  function save(form: HTMLFormElement): Promise<boolean> {
    const data = new FormData(form)
    const daily = String(data.get('daily_tokens') ?? '').trim()
    return doing(`Saved: ${id}`, () =>
      plane('PATCH', agentPath(id), {
        role: String(data.get('role')).trim(),
        description: String(data.get('description')),
        daily_tokens: daily === '' ? null : Number(daily),
        heartbeat_enabled: data.get('heartbeat_enabled') === 'on',
      }),
    )
  }
  return (
    <form class="card" onSubmit={submitBy(save)}>
      <div class="fields">
        <InputField id="edit-role" label="Role" name="role" required maxLength={64} defaultValue={role} />
        <InputField
          id="edit-tokens"
          label="Tokens a day"
          help="Leave empty for no limit of its own"
          name="daily_tokens"
          type="number"
          min={0}
          defaultValue={daily_tokens ?? ''}
        />
        <InputField id="edit-about" label="Description" name="description" maxLength={2000} defaultValue={description} />
      </div>
      <p>
        <label class="check">
          <input type="checkbox" name="heartbeat_enabled" defaultChecked={heartbeat_enabled} /> Its worker should always be connected
        </label>
      </p>
      <Submit>Save</Submit>
    </form>
  )
}

function Keys({ id }: { readonly id: string }) {
  const concerns = ({ agent_id, type }: ControlEvent) => agent_id === id && /^(agent|key)\./.test(type)
  const found = usePlane<{ keys: readonly AgentKey[] }>(agentPath(id, 'keys'), concerns)
  async function revoke(key: string): Promise<void> {
    const body = <p>Whoever uses {key} is refused at once, and the leases of the agent end.</p>
    if (!(await confirmed({ title: 'Revoke this key?', body, act: 'Revoke the key', isDangerous: true }))) return
    await doing(`Revoked: ${key}`, () => plane('DELETE', agentPath(id, `keys/${encodeURIComponent(key)}`)))
    found.again()
  }
  return (
    <Part id="keys-title" title="Keys" beside={<Button word="Rotate key" on={() => rotateKey(id).then(found.again)} />}>
      <LoadedList from={found} of={({ keys }) => keys} empty="It has no key." list="ul">
        {({ key_id, created_at, last_used_at, revoked_at }) => (
          <li key={key_id} class="line">
            <span class="grow breaks">
              <span class="mono">{key_id}</span>{' '}
              <span class="small quiet">
                made <At time={created_at} />, used <At time={last_used_at} />
                <Then word="revoked" time={revoked_at} />
              </span>
            </span>
            {revoked_at === null && <NamedButton word="Revoke" name={key_id} on={() => revoke(key_id)} />}
          </li>
        )}
      </LoadedList>
    </Part>
  )
}

function Sessions({ id }: { readonly id: string }) {
  const concerns = ({ agent_id, type }: ControlEvent) => agent_id === id && /^(run|session)\./.test(type)
  const found = usePlane<{ sessions: readonly SessionLine[] }>(agentPath(id, 'sessions?limit=50'), concerns)
  return (
    <Loaded from={found}>
      {({ sessions }) =>
        sessions.length > 0 && (
          <Part id="sessions-title" title="Session">
            <SessionLines of={sessions.toReversed()} />
          </Part>
        )
      }
    </Loaded>
  )
}

/** Shows how an agent is: paused, working, when it was last seen, and what it works on. */
export function AgentState({ agent }: { readonly agent: Agent }) {
  const { paused, paused_reason, heartbeat_enabled, last_seen_at, running } = agent
  const unseen = isUnseen(agent)
  return (
    <>
      {paused ? <Tag kind="warn">paused</Tag> : running.length > 0 ? <Tag kind="good">working</Tag> : null}
      {!heartbeat_enabled && <Tag>no heartbeat</Tag>}
      <span class={unseen ? 'small over' : 'small quiet'}>
        {last_seen_at === null ? (
          'never seen'
        ) : (
          <>
            seen <Ago time={last_seen_at} />
          </>
        )}
      </span>
      {paused && paused_reason !== null && paused_reason !== '' && (
        <span class="small quiet breaks">
          <PlainText text={paused_reason} />
        </span>
      )}
    </>
  )
}

export function Running({ of }: { readonly of: Agent['running'] }) {
  if (of.length === 0) return null
  return (
    <ul class="list">
      {of.map(({ task_id, run_id, title }) => (
        <li key={run_id} class="breaks">
          <IdLink id={task_id} /> <IdLink id={run_id} /> <PlainText text={title} />
        </li>
      ))}
    </ul>
  )
}

/** Answers "who works, and who does not": all agents with what can be done about each, or one of them. */
export function AgentsPage({ rest }: { readonly rest: string }) {
  const id = idIn(rest)
  return id === '' ? <AllAgents /> : <AgentView key={id} id={id} />
}

function AllAgents() {
  const marked = useMark({
    ids: () => agents.value.map(({ id }) => id),
    action: (key, id) => {
      const agent = agents.value.find((each) => each.id === id)
      if (key === 'Enter') return () => (location.hash = `#/agents/${encodeURIComponent(id)}`)
      if (!agent) return undefined
      return key === 'p' ? () => pauseOrResume(agent) : key === 'w' ? () => wake(id) : undefined
    },
    focuses: true,
  })
  return (
    <>
      <h1>Agents</h1>
      <About>An agent takes the tasks of its role. A paused agent takes none, but finishes its current task.</About>
      {agents.value.length === 0 && isKnown.value && <Empty>No agent is known yet; add the first one below.</Empty>}
      <ul class="list" aria-label="Agents">
        {agents.value.map((agent) => (
          <AgentCard key={agent.id} agent={agent} marked={agent.id === marked} />
        ))}
      </ul>
      <NewAgent />
    </>
  )
}

function AgentCard({ agent, marked }: { readonly agent: Agent; readonly marked: boolean }) {
  const { id, role, spent_today, daily_tokens, running, paused } = agent
  return (
    <li data-mark={id} tabIndex={-1} class={marked ? 'card marked' : 'card'} aria-current={marked || undefined}>
      <div class="row spread">
        <div class="row">
          <strong>
            <a href={`#/agents/${encodeURIComponent(id)}`}>{id}</a>
          </strong>
          <AgentState agent={agent} />
        </div>
        <span class="small quiet">
          {role}, {tokensOf(spent_today)}
          {daily_tokens !== null && ` of ${tokensOf(daily_tokens)}`} tokens today
        </span>
      </div>
      <Running of={running} />
      <div class="row actions">
        <NamedButton word={paused ? 'Resume' : 'Pause'} name={id} on={() => pauseOrResume(agent)} keyed="p" marked={marked} />
        <NamedButton word="Wake" name={id} on={() => wake(id)} keyed="w" marked={marked} />
        <NamedButton word="Rotate key" name={`of ${id}`} on={() => rotateKey(id)} />
      </div>
    </li>
  )
}

function NewAgent() {
  async function add(form: HTMLFormElement): Promise<void> {
    const data = new FormData(form)
    const text = (name: string) => String(data.get(name) ?? '').trim()
    await attempt(async () => {
      const daily = text('daily_tokens')
      const agent = { id: text('id'), role: text('role') }
      await plane<Agent>('POST', 'agents', {
        ...agent,
        description: text('description'),
        daily_tokens: daily === '' ? null : Number(daily),
      })
      form.reset()
      await showNewKey(agent, 'keys')
    })
  }
  return (
    <Part id="add-title" title="Add an agent">
      <form class="card" onSubmit={submitBy(add)}>
        <div class="fields">
          <InputField id="agent-id" label="Name" help="Letters, digits, and . _ -" name="id" required maxLength={64} />
          <InputField id="agent-role" label="Role" name="role" required maxLength={64} list="agent-roles" />
          <InputField
            id="agent-tokens"
            label="Tokens a day"
            help="Leave empty for only the limits of its role and of all agents"
            name="daily_tokens"
            type="number"
            min={0}
          />
          <InputField id="agent-about" label="Description" name="description" maxLength={2000} />
        </div>
        <Proposals id="agent-roles" of={roles.value} />
        <Submit>Add, and make its key</Submit>
      </form>
    </Part>
  )
}
