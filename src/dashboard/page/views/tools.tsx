/** Answers "what may it do, and why": the tools, what the gate says of a call, the lists in force, and what is always allowed. */

import type { AlwaysRule } from '../../../channels/http/answer-shapes.ts'
import { call } from '../net/api.ts'
import { About } from '../parts/fields.tsx'
import { Loaded, useAnswer } from '../parts/loaded.tsx'
import { Button, Empty, Part, riskKind, Tag, Time } from '../parts/small.tsx'
import type { ToolFacts } from '../shapes.ts'
import { attempt, may } from '../state.ts'
import { Explain, Policy } from './policy.tsx'

export function Tools(_: { readonly rest: string }) {
  const tools = useAnswer<readonly ToolFacts[]>('/tools', ({ event }) => event.type === 'estop')
  return (
    <>
      <h1>Tools and rules</h1>
      <About>See what the agent can use, what it may do without asking, what needs your approval, and what it never does.</About>
      <Explain tools={tools.value ?? []} />
      <Part id="tools-title" title="Tools">
        <Loaded from={tools}>{(all) => <ToolList of={all} />}</Loaded>
      </Part>
      <Always />
      <Policy />
    </>
  )
}

function ToolList({ of }: { readonly of: readonly ToolFacts[] }) {
  const [offered, others] = [of.filter(({ active }) => active), of.filter(({ active }) => !active)]
  return (
    <ul class="list">
      {[...offered, ...others].map(({ name, description, risk, active, why, source }) => (
        <li key={`${source} ${name}`} class="line">
          <div class="grow">
            <div class="row">
              <code class="name">{name}</code>
              <Tag kind={riskKind(risk)}>{risk} risk</Tag>
              {active ? <Tag>offered</Tag> : <Tag kind="warn">not offered</Tag>}
              {source !== 'built in' && <span class="quiet small breaks">{source}</span>}
            </div>
            <p class="breaks">{firstSentence(description)}</p>
            {why !== undefined && <p class="small breaks">Not offered: {why}.</p>}
          </div>
        </li>
      ))}
    </ul>
  )
}

function firstSentence(text: string): string {
  return /^.*?[.!?](?=\s|$)/s.exec(text)?.[0] ?? text
}

function Always() {
  const rules = useAnswer<{ rules: readonly AlwaysRule[] }>('/approvals/rules', ({ event }) => event.type === 'approval_closed')
  async function revoke(id: number): Promise<void> {
    await attempt(() => call('DELETE', `/approvals/rules/${id}`))
    rules.again()
  }
  return (
    <Part id="always-title" title="Always allowed">
      <Loaded from={rules}>
        {({ rules: all }) =>
          all.length === 0 ? (
            <Empty>No call is always allowed: each question is answered once.</Empty>
          ) : (
            <ul class="list">
              {all.map(({ id, tool, allows, added_by, added_at, altered }) => (
                <li key={id} class="line">
                  <div class="grow">
                    <p>
                      <code class="breaks">{allows}</code> <span class="quiet">with the tool {tool}</span>
                    </p>
                    <span class="quiet small">
                      {altered ? 'altered by somebody, so it allows nothing' : `allowed by ${added_by}`}, <Time at={added_at} />
                    </span>
                  </div>
                  {may('admin') && (
                    <Button on={() => revoke(id)}>
                      Revoke<span class="hidden"> {allows}</span>
                    </Button>
                  )}
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
    </Part>
  )
}
