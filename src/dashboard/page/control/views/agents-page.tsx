/** Answers "who works, and who does not": all agents with what can be done about each, or one of them. */

import type { Agent } from '../../../../control/contract/fleet-shapes.ts'
import { About, Field, submitBy } from '../../parts/fields.tsx'
import { useMark } from '../../parts/mark.ts'
import { Button, Empty, Part, Proposals } from '../../parts/small.tsx'
import { attempt } from '../../state.ts'
import { pauseOrResume, rotateKey, showNewKey, wake } from '../actions.tsx'
import { AgentState, AgentView, Running } from '../agents/agent-view.tsx'
import { agents, isKnown, roles } from '../control-state.ts'
import { plane } from '../net/plane.ts'
import { idIn } from '../parts/address.ts'
import { Keyed, tokensOf } from '../parts/bits.tsx'

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
      <About>An agent takes the tasks of its role. A paused one takes none; what it has begun ends.</About>
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
        <Button on={() => pauseOrResume(agent)}>
          <Keyed of="p" marked={marked}>
            {paused ? 'Resume' : 'Pause'}
            <span class="hidden"> {id}</span>
          </Keyed>
        </Button>
        <Button on={() => wake(id)}>
          <Keyed of="w" marked={marked}>
            Wake<span class="hidden"> {id}</span>
          </Keyed>
        </Button>
        <Button on={() => rotateKey(id)}>
          Rotate key<span class="hidden"> of {id}</span>
        </Button>
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
          <Field id="agent-id" label="Name" help="Letters, digits, and . _ -">
            <input id="agent-id" name="id" required maxLength={64} aria-describedby="agent-id-help" />
          </Field>
          <Field id="agent-role" label="Role">
            <input id="agent-role" name="role" required maxLength={64} list="agent-roles" />
          </Field>
          <Field id="agent-tokens" label="Tokens a day" help="Empty: only the limits of its role and of all">
            <input id="agent-tokens" name="daily_tokens" type="number" min={0} aria-describedby="agent-tokens-help" />
          </Field>
          <Field id="agent-about" label="Description">
            <input id="agent-about" name="description" maxLength={2000} />
          </Field>
        </div>
        <Proposals id="agent-roles" of={roles.value} />
        <button type="submit" class="main">
          Add, and make its key
        </button>
      </form>
    </Part>
  )
}
