/** Shows one agent: what it does, its limits and keys, its worker, and what it wrote into its session. */

import type { Agent, AgentKey } from '../../../../control/contract/fleet-shapes.ts'
import type { SessionLine } from '../../../../control/contract/run-shapes.ts'
import { Field, submitBy } from '../../parts/fields.tsx'
import { Loaded, useLoadedOn } from '../../parts/loaded.tsx'
import { Button, Empty, Facts, Part, Tag } from '../../parts/small.tsx'
import { attempt } from '../../state.ts'
import { agentPath, doing, pauseOrResume, rotateKey, wake } from '../actions.tsx'
import { isUnseen } from '../control-state.ts'
import { listenToPlane, plane } from '../net/plane.ts'
import { resumed } from '../net/plane-live.ts'
import { goTo } from '../parts/address.ts'
import { confirmed } from '../parts/ask.tsx'
import { Ago, At, IdLink, tokensOf } from '../parts/bits.tsx'
import { EventList, SessionLines } from '../parts/event-list.tsx'
import { JsonBlock, PlainText } from '../parts/plain-text.tsx'

export function AgentView({ id }: { readonly id: string }) {
  const found = useLoadedOn(
    listenToPlane,
    () => plane<Agent>('GET', agentPath(id)),
    id,
    ({ agent_id, type }) => agent_id === id || type === resumed.type,
  )
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
            {agent.description !== '' && (
              <p class="breaks">
                <PlainText text={agent.description} />
              </p>
            )}
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
                <summary>What its worker says of itself</summary>
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
    const body = <p>Its keys end. Its runs and their records stay.</p>
    if (!(await confirmed({ title: `Remove ${id}?`, body, act: 'Remove the agent', isDangerous: true }))) return
    if (await attempt(() => plane('DELETE', agentPath(id)))) goTo('agents', `Removed: ${id}`)
  }
  return (
    <>
      <Button on={() => pauseOrResume(agent)}>{paused ? 'Resume' : 'Pause'}</Button>
      <Button on={() => wake(id)}>Wake</Button>
      <Button on={() => remove()}>Remove</Button>
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
        <Field id="edit-role" label="Role">
          <input id="edit-role" name="role" required maxLength={64} defaultValue={role} />
        </Field>
        <Field id="edit-tokens" label="Tokens a day" help="Empty: no limit of its own">
          <input
            id="edit-tokens"
            name="daily_tokens"
            type="number"
            min={0}
            defaultValue={daily_tokens === null ? '' : String(daily_tokens)}
            aria-describedby="edit-tokens-help"
          />
        </Field>
        <Field id="edit-about" label="Description">
          <input id="edit-about" name="description" maxLength={2000} defaultValue={description} />
        </Field>
      </div>
      <p>
        <label class="check">
          <input type="checkbox" name="heartbeat_enabled" defaultChecked={heartbeat_enabled} /> Its worker should be seen all the time
        </label>
      </p>
      <button type="submit" class="main">
        Save
      </button>
    </form>
  )
}

function Keys({ id }: { readonly id: string }) {
  const found = useLoadedOn(
    listenToPlane,
    () => plane<{ keys: readonly AgentKey[] }>('GET', agentPath(id, 'keys')),
    id,
    ({ agent_id, type }) => agent_id === id && /^(agent|key)\./.test(type),
  )
  async function revoke(key: string): Promise<void> {
    const body = <p>Whoever uses {key} is refused at once, and the leases of the agent end.</p>
    if (!(await confirmed({ title: 'Revoke this key?', body, act: 'Revoke the key', isDangerous: true }))) return
    await doing(`Revoked: ${key}`, () => plane('DELETE', agentPath(id, `keys/${encodeURIComponent(key)}`)))
    found.again()
  }
  return (
    <section aria-labelledby="keys-title">
      <div class="row spread">
        <h2 id="keys-title">Keys</h2>
        <Button on={() => rotateKey(id).then(found.again)}>Rotate key</Button>
      </div>
      <Loaded from={found}>
        {({ keys }) =>
          keys.length === 0 ? (
            <Empty>It has no key.</Empty>
          ) : (
            <ul class="list">
              {keys.map(({ key_id, created_at, last_used_at, revoked_at }) => (
                <li key={key_id} class="line">
                  <span class="grow breaks">
                    <span class="mono">{key_id}</span>{' '}
                    <span class="small quiet">
                      made <At time={created_at} />, used <At time={last_used_at} />
                      {revoked_at !== null && (
                        <>
                          , revoked <At time={revoked_at} />
                        </>
                      )}
                    </span>
                  </span>
                  {revoked_at === null && (
                    <Button on={() => revoke(key_id)}>
                      Revoke<span class="hidden"> {key_id}</span>
                    </Button>
                  )}
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
    </section>
  )
}

function Sessions({ id }: { readonly id: string }) {
  const found = useLoadedOn(
    listenToPlane,
    () => plane<{ sessions: readonly SessionLine[] }>('GET', agentPath(id, 'sessions?limit=50')),
    id,
    ({ agent_id, type }) => agent_id === id && /^(run|session)\./.test(type),
  )
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
