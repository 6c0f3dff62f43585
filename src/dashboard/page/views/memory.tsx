/** Answers "what does it remember": a search over all that was said, and the facts that stay in the system prompt. */

import { useEffect, useState } from 'preact/hooks'
import type { Hit, Pin } from '../../../channels/http/answer-shapes.ts'
import { call } from '../net/api.ts'
import { About, filled, moment, submitBy } from '../parts/fields.tsx'
import { Loaded, LoadedList, useAnswer } from '../parts/loaded.tsx'
import { Button, Part, Submit, Tag, Time } from '../parts/small.tsx'
import { attempt, may, notice } from '../state.ts'

export function Memory({ rest }: { readonly rest: string }) {
  const asked = wordsIn(rest)
  return (
    <>
      <h1>Memory</h1>
      <About>Search all conversations, and choose the facts that the agent always remembers.</About>
      <Search asked={asked} />
      <Pins />
    </>
  )
}

/** The address contains the search, so that the browser's Back button returns to it. */
function wordsIn(rest: string): string {
  try {
    return decodeURIComponent(rest)
  } catch {
    return rest
  }
}

function Search({ asked }: { readonly asked: string }) {
  const [text, setText] = useState(asked)
  useEffect(() => setText(asked), [asked])
  return (
    <Part id="search-title" title="Search">
      <search>
        <form
          class="row"
          onSubmit={(event) => {
            event.preventDefault()
            location.hash = `#/memory/${encodeURIComponent(text.trim())}`
          }}
        >
          <input
            class="grow"
            type="search"
            aria-label="Words to search for"
            placeholder="Words from a conversation"
            value={text}
            maxLength={1000}
            onInput={(event) => setText(event.currentTarget.value)}
          />
          <Submit>Search</Submit>
        </form>
      </search>
      {asked !== '' && <Results key={asked} asked={asked} />}
    </Part>
  )
}

function Results({ asked }: { readonly asked: string }) {
  const found = useAnswer<{ results: readonly Hit[] }>(`/memory/search?limit=50&q=${encodeURIComponent(asked)}`)
  return (
    <Loaded from={found}>
      {({ results }) => (
        <>
          <p class="quiet small" role="status">
            {results.length === 0 ? `Nothing was found for “${asked}”.` : `${results.length} found, best first`}
          </p>
          <ol class="list results">
            {results.map(({ conversation_id, turn_id, role, at, snippet }) => (
              <li key={`${turn_id} ${role}`} class="card">
                <div class="row spread">
                  <Tag>{role === 'user' ? 'You' : role === 'assistant' ? 'Agent' : 'Tool'}</Tag>
                  <span class="quiet small">
                    <Time at={at} />
                  </span>
                </div>
                <p class="snippet">
                  <Marked text={snippet} words={asked} />
                </p>
                <a href={`#/talk/${conversation_id}`}>
                  Open the conversation<span class="hidden"> of this match</span>
                </a>
              </li>
            ))}
          </ol>
        </>
      )}
    </Loaded>
  )
}

function Marked({ text, words }: { readonly text: string; readonly words: string }) {
  const plain = words
    .split(/\s+/)
    .flatMap((word) => (word === '' ? [] : [word.replaceAll(/[^\p{L}\p{N}]/gu, (sign) => `\\u{${sign.codePointAt(0)?.toString(16)}}`)]))
  if (plain.length === 0) return <>{text}</>
  return (
    <>{text.split(new RegExp(`(${plain.join('|')})`, 'giu')).map((part, at) => (at % 2 === 1 ? <mark key={at}>{part}</mark> : part))}</>
  )
}

function Pins() {
  const list = useAnswer<{ pins: readonly Pin[] }>('/memory/pins')
  return (
    <Part id="pins-title" title="Pins">
      <p class="quiet">Each request to the model contains these facts, so keep them few and short.</p>
      <LoadedList from={list} of={({ pins }) => pins} empty="No fact is pinned." list="ol">
        {(pin) => (
          <li key={`${pin.number} ${pin.text}`} class="line">
            <div class="grow">
              <p class="breaks">{pin.text}</p>
              {pin.at !== '' && (
                <span class="quiet small">
                  <Time at={moment(pin.at)} />
                </span>
              )}
            </div>
            {may('admin') && <Button word="Remove" on={() => remove(pin).then(list.again)} more={` pin ${pin.number}`} />}
          </li>
        )}
      </LoadedList>
      {may('admin') && <NewPin added={list.again} />}
    </Part>
  )
}

function NewPin({ added }: { readonly added: () => void }) {
  async function add(form: HTMLFormElement): Promise<void> {
    const { text } = filled(form)
    if (text === undefined || !(await attempt(() => call('POST', '/memory/pins', { text })))) return
    form.reset()
    added()
  }
  return (
    <form class="row actions" onSubmit={submitBy(add)}>
      <input
        class="grow"
        name="text"
        aria-label="A fact to pin"
        placeholder="A fact that the agent should always know"
        maxLength={2000}
        required
      />
      <button type="submit">Pin it</button>
    </form>
  )
}

/** A pin has no name but its number, which changes when another page removes one before it. */
async function remove({ number, text }: Pin): Promise<void> {
  await attempt(async () => {
    const { pins } = await call<{ pins: readonly Pin[] }>('GET', '/memory/pins')
    if (pins.find((pin) => pin.number === number)?.text !== text) {
      notice.value = { text: 'The pins have changed. Check the list and remove the pin again.', bad: true }
      return
    }
    await call('DELETE', `/memory/pins/${number}`)
  })
}
