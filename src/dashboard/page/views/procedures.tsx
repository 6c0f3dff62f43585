/** Answers "which steps are fixed, and how far are they": the procedures, one of them with its runs, and one run live with its question. */

import type { SopDetails, SopFacts, SopRunDetails, SopRunFacts } from '../../../channels/http/answer-shapes.ts'
import { call } from '../net/api.ts'
import type { Live } from '../net/live.ts'
import { About, counted, filled, InputField, submitBy } from '../parts/fields.tsx'
import { Loaded, LoadedList, useAnswer } from '../parts/loaded.tsx'
import { Question } from '../parts/question.tsx'
import { Block, Button, Facts, Part, Submit, Tag, Time } from '../parts/small.tsx'
import { approvals, attempt, doing, may } from '../state.ts'

const kinds: { readonly [state: string]: 'good' | 'bad' | 'warn' } = {
  ...{ done: 'good', failed: 'bad', cancelled: 'bad', waiting: 'warn', asked: 'warn', skipped: 'warn' },
  ...{ enabled: 'good', changed: 'bad', untrusted: 'bad', off: 'warn' },
}

function State({ of }: { readonly of: string }) {
  return <Tag kind={kinds[of] ?? ''}>{of}</Tag>
}

/** Each step is a turn, so its begin and end are events of a run. */
function concernsProcedures({ event: { type }, channel }: Live): boolean {
  return type === 'procedure_changed' || type.startsWith('approval_') || (type.startsWith('run_') && channel === 'sop')
}

export function Procedures({ rest }: { readonly rest: string }) {
  return (
    <>
      <h1>Procedures</h1>
      {rest === '' ? (
        <ProcedureList />
      ) : rest.startsWith('sop_') ? (
        <ProcedureRun key={rest} id={rest} />
      ) : (
        <Procedure key={rest} name={rest} />
      )}
    </>
  )
}

function ProcedureList() {
  const list = useAnswer<{ sops: readonly SopFacts[] }>('/sops', concernsProcedures)
  return (
    <>
      <About>See the procedures, what begins them by themselves, and how their runs ended. The steps of one run in a fixed order.</About>
      <LoadedList from={list} of={({ sops }) => sops} empty="There are no procedures yet.">
        {(sop) => <SopCard key={sop.name} sop={sop} />}
      </LoadedList>
      <SopRuns name="" />
    </>
  )
}

function SopCard({ sop: { name, description, where, steps, problems, triggers, trigger_state } }: { readonly sop: SopFacts }) {
  return (
    <article class="card" aria-label={`Procedure ${name}`}>
      <div class="row spread">
        <h2 class="name">
          <a href={`#/procedures/${name}`}>{name}</a>
        </h2>
        <span class="quiet small">
          {counted(steps, 'step')}, from the {where}
        </span>
      </div>
      {description !== '' && <p class="breaks">{description}</p>}
      {problems.length > 0 && <Block text={problems.join('\n')} label={`Problems of ${name}`} />}
      {triggers.length > 0 && (
        <p class="breaks">
          Begins by {triggers.join(', or by ')} <State of={trigger_state} />
        </p>
      )}
    </article>
  )
}

function SopRuns({ name }: { readonly name: string }) {
  const runs = useAnswer<{ runs: readonly SopRunFacts[] }>(`/sops/runs${name === '' ? '' : `?name=${name}`}`, concernsProcedures)
  return (
    <Part id="sop-runs" title="Runs">
      <LoadedList from={runs} of={({ runs: all }) => all} empty="No runs yet." list="ul" kind="runs">
        {(run) => (
          <li key={run.id}>
            <a class="entry row spread" href={`#/procedures/${run.id}`}>
              <span class="grow clip">
                {run.name} {run.why}
              </span>
              <span class="row small">
                <State of={run.state} /> <span class="quiet">{run.started_by}</span> <Time at={run.started} />
              </span>
            </a>
          </li>
        )}
      </LoadedList>
    </Part>
  )
}

function Procedure({ name }: { readonly name: string }) {
  const sop = useAnswer<SopDetails>(`/sops/${name}`)
  return (
    <>
      <p class="small">
        <a href="#/procedures">All procedures</a>
      </p>
      <Loaded from={sop}>
        {(facts) => (
          <>
            <SopCard sop={facts} />
            <Part id="sop-steps" title="Steps">
              <ol>
                {facts.plan.map(({ id, kind, tool, args, prompt }) => (
                  <li key={id} class="breaks">
                    <b>{id}</b> <Tag>{kind}</Tag> {prompt || `${tool} ${JSON.stringify(args)}`}
                  </li>
                ))}
              </ol>
              <p class="quiet small mono breaks">{facts.path}</p>
            </Part>
            {may('admin') && facts.problems.length === 0 && <NewRun sop={facts} />}
          </>
        )}
      </Loaded>
      <SopRuns name={name} />
    </>
  )
}

function NewRun({ sop: { name, inputs } }: { readonly sop: SopDetails }) {
  const begin = (form: HTMLFormElement) =>
    attempt(async () => {
      const { id } = await call<SopRunFacts>('POST', `/sops/${name}/runs`, { inputs: filled(form) })
      location.hash = `#/procedures/${id}`
    })
  return (
    <form class="card" onSubmit={submitBy(begin)}>
      <div class="fields">
        {Object.entries(inputs).map(([input, { description, default: usual }]) => (
          <InputField
            key={input}
            id={`input-${input}`}
            label={description || input}
            help={`The input ${input}`}
            name={input}
            required={usual === undefined}
            placeholder={usual ?? ''}
          />
        ))}
      </div>
      <Submit>Run it</Submit>
    </form>
  )
}

function ProcedureRun({ id }: { readonly id: string }) {
  const run = useAnswer<SopRunDetails>(`/sops/runs/${id}`, concernsProcedures)
  const act = (what: 'cancel' | 'resume', done: string) => async () => {
    await doing(`${done}: ${id}`, () => call('POST', `/sops/runs/${id}/${what}`, {}))
    run.again()
  }
  return (
    <Loaded from={run}>
      {({ name, state, why, started, started_by, ended, steps, inputs, outputs }) => (
        <>
          <p class="small">
            <a href={`#/procedures/${name}`}>{name}</a>
          </p>
          <div class="row">
            <State of={state} /> <span class="breaks">{why}</span>
            {ended === null && may('admin') && <Button word="Cancel" on={act('cancel', 'Cancelled')} />}
            {ended === null && may('admin') && <Button word="Resume" on={act('resume', 'Continued')} />}
          </div>
          <Facts
            of={[
              ['Begun by', started_by],
              ['Began', <Time at={started} />],
              ended !== null && ['Ended', <Time at={ended} />],
              ...Object.entries(inputs).map(([input, value]) => [input, value] as const),
            ]}
          />
          {approvals.value.map((each) => steps.some(({ question }) => question === each.id) && <Question key={each.id} approval={each} />)}
          <Part id="sop-steps" title="Steps">
            <ol class="list">
              {steps.map(({ step, state: ended, attempt: count, output, why: reason, conversation_id }) => (
                <li key={step} class="card">
                  <div class="row spread">
                    <span>
                      <b>{step}</b> <State of={ended} /> {count > 1 && `attempt ${count}`}
                    </span>
                    {conversation_id !== null && (
                      <a href={`#/talk/${conversation_id}`}>
                        Its turn<span class="hidden">: {step}</span>
                      </a>
                    )}
                  </div>
                  {reason !== '' && <p class="breaks">{reason}</p>}
                  {output !== '' && <Block text={output} label={`Output of ${step}`} />}
                </li>
              ))}
            </ol>
          </Part>
          {Object.entries(outputs).map(([output, text]) => (
            <Part key={output} id={`output-${output}`} title={output}>
              <Block text={text} label={`Result ${output}`} />
            </Part>
          ))}
        </>
      )}
    </Loaded>
  )
}
