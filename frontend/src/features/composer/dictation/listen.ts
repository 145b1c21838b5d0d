import { MOST_SECONDS, recognitionOf, transcribe } from "@/lib/dictation";

/** Reason for missing text: `denied` and `none` concern the microphone, `nothing` means silence. */
export type Trouble = "denied" | "none" | "nothing" | "failed" | "failedBrowser";

/** Callbacks of a recording. */
export interface Listener {
  /** Recorded, and on its way to become text. */
  onWriting: (on: Listening) => void;
  onText: (text: string) => void;
  /** `again` has the recording still. */
  onTrouble: (trouble: Trouble, reason?: string, again?: () => void) => void;
  /** Nothing follows any more. */
  onEnd: () => void;
}

/** Someone who listens. */
export interface Listening {
  /** End the recording and convert it to text. */
  finish: () => void;
  /** Discard the recording. */
  cancel: () => void;
}

const FORMATS = ["audio/webm;codecs=opus", "audio/mp4", "audio/ogg;codecs=opus"];

/** Records until `finish`, then has the server write it down. */
export async function record(listener: Listener): Promise<Listening | null> {
  let stream: MediaStream;
  try {
    stream = await navigator.mediaDevices.getUserMedia({ audio: true });
  } catch (error) {
    listener.onTrouble((error as DOMException).name === "NotFoundError" ? "none" : "denied");
    listener.onEnd();
    return null;
  }
  const mimeType = FORMATS.find((format) => MediaRecorder.isTypeSupported(format));
  const recorder = new MediaRecorder(stream, { mimeType, audioBitsPerSecond: 32_000 });
  const pieces: Blob[] = [];
  const aborted = new AbortController();
  const write = async (sound: Blob) => {
    listener.onWriting(self);
    try {
      const text = await transcribe(sound, aborted.signal);
      if (text) listener.onText(text);
      else listener.onTrouble("nothing");
    } catch (error) {
      if (!aborted.signal.aborted)
        listener.onTrouble("failed", (error as Error).message, () => void write(sound));
    }
    listener.onEnd();
  };
  recorder.ondataavailable = ({ data }) => pieces.push(data);
  recorder.onstop = () => {
    clearTimeout(timer);
    stream.getTracks().forEach((track) => track.stop());
    if (!aborted.signal.aborted) void write(new Blob(pieces, { type: recorder.mimeType || mimeType }));
  };
  const stop = () => recorder.state !== "inactive" && recorder.stop();
  const timer = setTimeout(stop, MOST_SECONDS * 1000);
  recorder.start();
  const self: Listening = {
    finish: stop,
    cancel: () => {
      aborted.abort();
      stop();
      listener.onEnd();
    },
  };
  return self;
}

/** The browser writes while one speaks. */
export function recognise(language: string, listener: Listener): Listening | null {
  const Recognition = recognitionOf();
  if (!Recognition) return null;
  const recognition = new Recognition();
  recognition.lang = language;
  recognition.continuous = true;
  recognition.onresult = ({ resultIndex, results }) => {
    for (const result of Array.from(results).slice(resultIndex))
      if (result.isFinal && result[0].transcript.trim()) listener.onText(result[0].transcript.trim());
  };
  recognition.onerror = ({ error }) => {
    if (error === "aborted") return;
    listener.onTrouble(TROUBLES[error] ?? "failedBrowser");
  };
  recognition.onend = listener.onEnd;
  recognition.start();
  return {
    finish: () => recognition.stop(),
    cancel: () => {
      recognition.onresult = null;
      recognition.abort();
    },
  };
}

const TROUBLES: Record<string, Trouble> = {
  "not-allowed": "denied",
  "audio-capture": "none",
  "no-speech": "nothing",
};
