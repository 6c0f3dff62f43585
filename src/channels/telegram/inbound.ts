/** Selects the updates for the agent: a message of a person, in a private chat or addressed to the bot in a group. */

import { isObject } from '../../kit/json.ts'

/** `messageId`: the message that brought it; the photos of an album come as one message each. */
export type Photo = { readonly fileId: string; readonly messageId: number; readonly bytes?: number }

export type Command = 'start' | 'stop' | 'new'

/** Plain data: what is open is kept in a file. Ids are Telegram's, in digits; those of groups are negative. */
export type TelegramMessage = {
  readonly updateId: number
  readonly messageId: number
  readonly chat: string
  /** The topic of a forum. */
  readonly thread?: number
  readonly isGroup: boolean
  readonly person: string
  readonly text: string
  readonly photos: readonly Photo[]
  readonly command?: Command
  /** The text was written by somebody else. */
  readonly isForwarded: boolean
  readonly album?: string
}

export type Heard =
  | { readonly kind: 'message'; readonly message: TelegramMessage }
  | { readonly kind: 'not for us' }
  | { readonly kind: 'no text'; readonly chat: string; readonly messageId: number; readonly why: string }

export type Self = { readonly id: number; readonly username: string }

type Fields = { readonly [key: string]: unknown }

/** Never throws: what Telegram sends is read field by field. */
export function hear(update: unknown, self: Self): Heard {
  const { update_id: updateId, message } = fields(update)
  const said = fields(message)
  const [from, chat] = [fields(said.from), fields(said.chat)]
  const [person, place, messageId] = [whole(from.id), whole(chat.id), whole(said.message_id)]
  if (typeof updateId !== 'number' || person === undefined || place === undefined || messageId === undefined) return { kind: 'not for us' }
  const isGroup = chat.type === 'group' || chat.type === 'supergroup'
  const isMachine = from.is_bot !== false || said.sender_chat !== undefined || said.via_bot !== undefined
  if (isMachine || (chat.type !== 'private' && !isGroup)) return { kind: 'not for us' }
  const text = textOf(said)
  const named = mentions(said, text, self)
  if (isGroup && named.length === 0 && !isReplyTo(said, self)) return { kind: 'not for us' }
  const words = without(text, named)
  const photos = photosOf(said).map((photo) => ({ ...photo, messageId }))
  if (words === '' && photos.length === 0) return { kind: 'no text', chat: String(place), messageId, why: whyNoText(said) }
  const command = commandIn(said, text, self)
  const thread = said.is_topic_message === true ? whole(said.message_thread_id) : undefined
  return {
    kind: 'message',
    message: {
      ...{ updateId, messageId, chat: String(place), isGroup, person: String(person), text: words, photos },
      isForwarded: said.forward_origin !== undefined || said.forward_date !== undefined,
      thread,
      command,
      album: typeof said.media_group_id === 'string' ? said.media_group_id : undefined,
    },
  }
}

/** Joins the photos of an album, which come as one message each, to the first of them. */
export function joinAlbums(messages: readonly TelegramMessage[]): TelegramMessage[] {
  const joined: TelegramMessage[] = []
  for (const message of messages) {
    const at = joined.findIndex(
      ({ album, chat, person }) => album !== undefined && album === message.album && chat === message.chat && person === message.person,
    )
    const first = joined[at]
    if (first === undefined) joined.push(message)
    else
      joined[at] = {
        ...first,
        text: [first.text, message.text].filter((each) => each !== '').join('\n'),
        photos: [...first.photos, ...message.photos],
      }
  }
  return joined
}

function fields(value: unknown): Fields {
  return isObject(value) ? value : {}
}

function whole(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) ? value : undefined
}

function textOf({ text, caption }: Fields): string {
  return typeof text === 'string' ? text : typeof caption === 'string' ? caption : ''
}

type Entity = Fields & { readonly type: string; readonly offset: number; readonly length: number }

/** Offsets count UTF-16 units, as here. */
function entitiesOf({ entities, caption_entities }: Fields): Entity[] {
  const found = entities ?? caption_entities
  return Array.isArray(found) ? found.filter(isEntity) : []
}

function isEntity(value: unknown): value is Entity {
  return isObject(value) && typeof value.type === 'string' && whole(value.offset) !== undefined && whole(value.length) !== undefined
}

/** The places where the bot is addressed: by its name, by a link to it, or as a command with its name. */
function mentions(said: Fields, text: string, { id, username }: Self): Entity[] {
  const name = `@${username.toLowerCase()}`
  return entitiesOf(said).filter((entity) => {
    const part = text.slice(entity.offset, entity.offset + entity.length).toLowerCase()
    if (entity.type === 'mention') return part === name
    if (entity.type === 'bot_command') return part.endsWith(name)
    return entity.type === 'text_mention' && fields(entity.user).id === id
  })
}

/** A command keeps its own name. */
function without(text: string, named: readonly Entity[]): string {
  const cut = named.toSorted((a, b) => b.offset - a.offset)
  return cut
    .reduce((rest, { type, offset, length }) => {
      const part = rest.slice(offset, offset + length)
      return rest.slice(0, offset) + (type === 'bot_command' ? part.slice(0, part.lastIndexOf('@')) : '') + rest.slice(offset + length)
    }, text)
    .trim()
}

function isReplyTo({ reply_to_message: original }: Fields, { id }: Self): boolean {
  return fields(fields(original).from).id === id
}

/** In a group a command counts only with the name of the bot: others may have the same one. */
function commandIn(said: Fields, text: string, { username }: Self): Command | undefined {
  const first = entitiesOf(said).find(({ type, offset }) => type === 'bot_command' && offset === 0)
  const [word = '', name] = text.slice(1, first?.length).toLowerCase().split('@')
  if (first === undefined || (name !== undefined && name !== username.toLowerCase())) return undefined
  return word === 'start' || word === 'stop' || word === 'new' ? word : undefined
}

/** The largest size of a photo, or a picture that was sent as a file. */
function photosOf({ photo, document }: Fields): Omit<Photo, 'messageId'>[] {
  const sizes = (Array.isArray(photo) ? photo : []).flatMap(photoIn).toSorted((a, b) => b.pixels - a.pixels)
  const { mime_type: type } = fields(document)
  const asFile = typeof type === 'string' && /^image\/(jpeg|png|webp)$/.test(type) ? photoIn(document) : []
  return [...sizes.slice(0, 1), ...asFile].slice(0, 1).map(({ pixels: _, ...found }) => found)
}

function photoIn(value: unknown): (Omit<Photo, 'messageId'> & { readonly pixels: number })[] {
  const { file_id: fileId, file_size, width, height } = fields(value)
  const bytes = whole(file_size)
  if (typeof fileId !== 'string' || fileId === '' || fileId.length > 500) return []
  return [{ fileId, pixels: (whole(width) ?? 0) * (whole(height) ?? 0), bytes }]
}

function whyNoText(said: Fields): string {
  const other = ['voice', 'audio', 'video', 'video_note', 'sticker', 'document', 'poll', 'location', 'contact'].find(
    (kind) => said[kind] !== undefined,
  )
  return other === undefined ? 'it has no text' : `it is a ${other.replace('_', ' ')}, which is not read`
}
