//! What a planner wants to know from the person before it plans.

use std::collections::BTreeMap;

use super::Unanswered;
use super::sheet::{STRONG, Sheet};
use super::talk::Talk;
use crate::executor::Question;
use crate::narrate::plain;

/// Answers by question, as the planner gets them back.
pub(super) fn ask(
    talk: &mut Talk<'_>,
    questions: &[Question],
) -> Result<BTreeMap<String, String>, Unanswered> {
    let mut answers = BTreeMap::new();
    for (at, question) in questions.iter().enumerate() {
        let mut sheet = talk.sheet();
        draw(&mut sheet, question, at + 1, questions.len());
        talk.show(&sheet.finish());
        let prompt = prompt(question);
        let answer = loop {
            let line = talk.ask_line(&prompt)?;
            match read(&line, question) {
                Ok(answer) => break answer,
                Err(why) => talk.say(&why),
            }
        };
        answers.insert(question.question.clone(), answer);
    }
    Ok(answers)
}

fn prompt(question: &Question) -> String {
    match (question.options.len(), question.multi_select) {
        (0, _) => "Your answer > ".to_owned(),
        (most, false) => format!("A number from 1 to {most}, or an answer of your own > "),
        (most, true) => {
            format!("Numbers from 1 to {most} with commas between, or an answer of your own > ")
        }
    }
}

/// What a line means: options by number, or the person's own words.
fn read(line: &str, question: &Question) -> Result<String, String> {
    let line = line.trim();
    if line.is_empty() {
        return Err("The planner waits for an answer; `no preference` is one, too.".to_owned());
    }
    let words: Vec<&str> = line.split(',').map(str::trim).filter(|word| !word.is_empty()).collect();
    let is_number = |word: &&str| word.chars().all(|c| c.is_ascii_digit());
    if question.options.is_empty() || words.is_empty() || !words.iter().all(is_number) {
        return Ok(line.to_owned());
    }
    if words.len() > 1 && !question.multi_select {
        return Err("Please choose one of them, or write an answer of your own.".to_owned());
    }
    let mut labels: Vec<&str> = Vec::new();
    for word in words {
        let number = word.parse::<usize>().ok();
        let option = number.and_then(|number| question.options.get(number.checked_sub(1)?));
        let Some(option) = option else {
            return Err(format!("There is no option `{}`.", plain(word)));
        };
        if !labels.contains(&option.label.as_str()) {
            labels.push(&option.label);
        }
    }
    Ok(labels.join(", "))
}

fn draw(sheet: &mut Sheet, question: &Question, number: usize, of: usize) {
    let place = if of > 1 { format!(" ({number} of {of})") } else { String::new() };
    let header = match question.header.trim() {
        "" => "The planner asks".to_owned(),
        header => format!("The planner asks: {header}"),
    };
    sheet.title(&format!("{header}{place}"));
    sheet.paragraph(0, &question.question);
    if !question.options.is_empty() {
        sheet.blank();
    }
    for (at, option) in question.options.iter().enumerate() {
        sheet.styled(STRONG, &format!("  {}. {}", at + 1, option.label));
        if !option.description.trim().is_empty() {
            sheet.paragraph(5, &option.description);
        }
    }
    sheet.blank();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::executor::Choice;
    use crate::people::samples::page;

    fn question(multi_select: bool) -> Question {
        let option = |label: &str, description: &str| Choice {
            label: label.to_owned(),
            description: description.to_owned(),
        };
        Question {
            question: "Where should sessions be stored?".to_owned(),
            header: "Storage".to_owned(),
            options: vec![
                option("In memory", "Simple and fast, but everyone is logged out by a restart."),
                option("Redis\u{1b}[31m", ""),
                option("Postgres", "One table more; survives everything."),
            ],
            multi_select,
        }
    }

    #[test]
    fn a_question_is_shown_with_its_options() {
        insta::assert_snapshot!(page(60, |sheet| draw(sheet, &question(false), 2, 3)));
    }

    #[test]
    fn answers_are_options_or_words() {
        let none = Question { options: Vec::new(), ..question(false) };
        let wait = "The planner waits for an answer; `no preference` is one, too.";
        for (line, question, answer) in [
            ("1", question(false), Ok("In memory")),
            ("use sqlite, please", question(false), Ok("use sqlite, please")),
            ("1,3", question(true), Ok("In memory, Postgres")),
            ("3, 3,", question(true), Ok("Postgres")),
            ("1 3", question(true), Ok("1 3")),
            (
                "1,3",
                question(false),
                Err("Please choose one of them, or write an answer of your own."),
            ),
            ("4", question(false), Err("There is no option `4`.")),
            ("0", question(true), Err("There is no option `0`.")),
            ("4", none.clone(), Ok("4")),
            ("  ", none, Err(wait)),
        ] {
            let expected = answer.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(read(line, &question), expected, "{line:?}");
        }
    }
}
