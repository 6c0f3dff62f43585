/** Shows how an agent is: paused, working, when it was last seen, and what it works on. */

import type { Agent } from '../../../../control/contract/fleet-shapes.ts'
import { Tag } from '../../parts/small.tsx'
import { isUnseen } from '../control-state.ts'
import { Ago, IdLink } from '../parts/bits.tsx'
import { PlainText } from '../parts/plain-text.tsx'

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
