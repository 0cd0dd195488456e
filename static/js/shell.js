// What every page has: times in words, messages that go away, the number of questions that wait.
import "./times.js";
import "./toast.js";
import "./waiting.js";
